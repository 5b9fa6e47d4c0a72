// Vectors and matrices: what torch does for the model's formulas. A vector is a Float32Array; sums are made in double.

/** A vector of zeros, (size,). */
export const zeros = (size) => new Float32Array(size);

export const tanh = (x) => x.map(Math.tanh);
export const sigmoid = (x) => x.map((one) => 1 / (1 + Math.exp(-one)));
export const relu = (x) => x.map((one) => Math.max(one, 0));

/** x + y, (N,). */
export const add = (x, y) => x.map((one, i) => one + y[i]);

/** x * y, number by number, (N,). */
export const times = (x, y) => x.map((one, i) => one * y[i]);

/** a x, (N,). */
export const scale = (a, x) => x.map((one) => a * one);

/** x · y. */
export function dot(x, y) {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += x[i] * y[i];
  return sum;
}

export const sum = (x) => x.reduce((total, one) => total + one, 0);

/** |x|. */
export const norm = (x) => Math.sqrt(dot(x, x));

/** [x; y; ...], one vector behind the other. */
export function join(vectors) {
  const joined = zeros(vectors.reduce((size, x) => size + x.length, 0));
  let start = 0;
  for (const x of vectors) {
    joined.set(x, start);
    start += x.length;
  }
  return joined;
}

/** A vector in `count` parts of one size. */
export function split(x, count) {
  const size = x.length / count;
  return Array.from({ length: count }, (_, i) => x.subarray(i * size, (i + 1) * size));
}

/** sum_i a_i x_i: weights (S,) and vectors (S, D) -> (D,). */
export function weightedSum(weights, vectors) {
  const total = new Float64Array(vectors[0].length);
  vectors.forEach((x, i) => {
    for (let j = 0; j < total.length; j++) total[j] += weights[i] * x[j];
  });
  return Float32Array.from(total);
}

/** The mean of vectors (N, D) -> (D,). */
export const mean = (vectors) => weightedSum(vectors.map(() => 1 / vectors.length), vectors);

/** The number of the greatest one; of equal ones, the first. */
export function argmax(x) {
  let best = 0;
  for (let i = 1; i < x.length; i++) if (x[i] > x[best]) best = i;
  return best;
}

/** The numbers of the `count` greatest ones, the greatest first; of equal ones, the first one first. */
export function greatest(x, count) {
  const best = [];
  for (let i = 0; i < x.length; i++) {
    if (best.length === count && !(x[i] > x[best[count - 1]])) continue;
    let place = best.length;
    while (place > 0 && x[i] > x[best[place - 1]]) place--;
    best.splice(place, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}

/** log softmax(z), (V,). A number of minus infinity stays so. */
export function logSoftmax(z) {
  const most = z[argmax(z)];
  let total = 0;
  for (const one of z) total += Math.exp(one - most);
  const log = Math.log(total);
  return z.map((one) => one - most - log);
}

/** softmax(z), (V,). */
export function softmax(z) {
  const most = z[argmax(z)];
  const powers = Float64Array.from(z, (one) => Math.exp(one - most));
  const total = sum(powers);
  return Float32Array.from(powers, (one) => one / total);
}

/** A matrix of some columns of another one that are side by side. */
export class Matrix {
  /**
   * @param {Float32Array} values row by row
   * @param {number} rows
   * @param {number} width of a row in `values`
   * @param {number} first column that belongs to this matrix
   * @param {number} columns that belong to it
   */
  constructor(values, rows, width, first = 0, columns = width) {
    Object.assign(this, { values, rows, width, first, columns });
  }

  /** W x: (columns,) -> (rows,). */
  times(x) {
    const { values, rows, columns } = this;
    const product = zeros(rows);
    for (let i = 0; i < rows; i++) {
      const start = i * this.width + this.first;
      let total = 0;
      for (let j = 0; j < columns; j++) total += values[start + j] * x[j];
      product[i] = total;
    }
    return product;
  }

  /** p W, the sum of the rows in these shares: (rows,) -> (columns,). */
  sumOfRows(shares) {
    const total = new Float64Array(this.columns);
    for (let i = 0; i < this.rows; i++) {
      for (let j = 0; j < this.columns; j++) total[j] += shares[i] * this.values[i * this.width + this.first + j];
    }
    return Float32Array.from(total);
  }

  row(i) {
    const start = i * this.width + this.first;
    return this.values.subarray(start, start + this.columns);
  }

  /** The columns from one to another, `[:, first:end]`. */
  slice(first, end = this.columns) {
    return new Matrix(this.values, this.rows, this.width, this.first + first, end - first);
  }
}
