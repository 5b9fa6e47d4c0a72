// The operations between symbols, as in attnlab/tasks/symbols/operations.py, on arrays of one sentence.
//
// Axes: S source tokens, K any length that a product sums over. An array is {shape, data}: a number, a vector or a matrix,
// row by row. Each operation takes the arrays that it reads, and behind them its settings.

import { around, chunkSoftmax, firstChosen, meanChoice, oneBefore } from "./histories.js";
import { WEIGHTS } from "./normalisers.js";

/** An array of this shape, () for a number. */
export const arrayOf = (data, ...shape) => ({ shape, data: Float64Array.from(data) });
export const numberOf = (value) => arrayOf([value]);
export const vectorOf = (values) => arrayOf(values, values.length);

/** Rows (S, K) as an array; `width` is K where there may be no row. */
export const rowsOf = (rows, width = rows[0].length) => arrayOf(rows.flatMap((row) => [...row]), rows.length, width);

/** A `Matrix` of the model. */
export const matrixOf = (matrix) => rowsOf(Array.from({ length: matrix.rows }, (_, i) => matrix.row(i)), matrix.columns);

const width = ({ shape }) => shape.at(-1);
export const row = (matrix, i) => matrix.data.subarray(i * width(matrix), (i + 1) * width(matrix));
const rows = (matrix) => Array.from({ length: matrix.shape[0] }, (_, i) => row(matrix, i));
const like = ({ shape }, data) => arrayOf(data, ...shape);
const map = (x, f) => like(x, x.data.map(f));
const inner = (x, y) => x.reduce((total, one, k) => total + one * y[k], 0);

/** Number by number; the smaller array meets each row of the larger one, or is a number that meets all. */
function pairwise(one, other, f) {
  const larger = one.data.length >= other.data.length ? one : other;
  const at = (x, i) => x.data[x.data.length === larger.data.length ? i : i % x.data.length];
  const shape = one.shape.length >= other.shape.length ? one.shape : other.shape;
  return arrayOf(larger.data.map((_, i) => f(at(one, i), at(other, i))), ...shape);
}

const sigmoid = (x) => map(x, (one) => 1 / (1 + Math.exp(-one)));
const tanh = (x) => map(x, Math.tanh);
const FUNCTIONS = { sigmoid, tanh };

/** A part of a vector. */
const part = (x, start, size) => vectorOf(x.data.subarray(start, start + size));
const add = (one, other) => pairwise(one, other, (x, y) => x + y);
const multiply = (one, other) => pairwise(one, other, (x, y) => x * y);

export const OPERATIONS = {
  /** A row of a matrix: the embedding of a token. */
  lookup: (matrix, { index }) => vectorOf(row(matrix, index)),
  rows: (matrix, { start, stop }) => rowsOf(rows(matrix).slice(start, stop), width(matrix)),
  columns: (matrix, { start, stop }) => rowsOf(rows(matrix).map((each) => each.subarray(start, stop)), stop - start),
  /** The numbers at some places of a vector. */
  gather: (x, { index }) => vectorOf(index.map((place) => x.data[place])),
  concat: (...parts) => vectorOf(parts.slice(0, -1).flatMap(({ data }) => [...data])),
  /** W x + b of a vector x (K,), or of each row of a matrix x (S, K). */
  linear(weight, x, ...rest) {
    const bias = rest.length > 1 ? rest[0] : null;
    const product = (of) => rows(weight).map((each, i) => inner(each, of) + (bias === null ? 0 : bias.data[i]));
    return x.shape.length === 1 ? vectorOf(product(x.data)) : rowsOf(rows(x).map(product), weight.shape[0]);
  },
  /** The product of a vector (K,) with each row of a matrix (S, K), or with a vector. */
  dot: (query, keys) => (keys.shape.length === 1 ? numberOf(inner(query.data, keys.data)) : vectorOf(rows(keys).map((key) => inner(query.data, key)))),
  /** Rows (S, K), each times its weight (S,), added up: (K,). */
  weighted_sum: (weights, values) => vectorOf(columnSums(rows(values).map((each, i) => each.map((one) => weights.data[i] * one)), width(values))),
  outer: (one, other) => rowsOf([...one.data].map((x) => other.data.map((y) => x * y)), other.data.length),
  add: (...terms) => terms.slice(0, -1).reduce(add),
  multiply,
  /** 0 where there is nothing to divide, as of weights that the mask has all taken away. */
  divide: (one, other) => pairwise(one, other, (x, y) => (y === 0 ? 0 : x / y)),
  total: (x) => numberOf(x.data.reduce((sum, one) => sum + one, 0)),
  /** Of each place of a vector (S,) the numbers of its neighbourhood: (S, width), 0 outside. */
  around: (x, { width: reach }) => rowsOf(around(x.data, reach), reach),
  one_before: (x) => vectorOf(oneBefore(x.data)),
  first_chosen: (energy, before) => vectorOf(firstChosen(energy.data, before.data)),
  mean_choice: (energy, before) => vectorOf(meanChoice(energy.data, before.data)),
  chunk_softmax: (stops, energies, { size }) => vectorOf(chunkSoftmax(stops.data, energies.data, size)),
  sum_of_rows: (matrix) => vectorOf(columnSums(rows(matrix), width(matrix))),
  /** Each row divided by its length. */
  unit(x) {
    const unit = (of) => of.map((one) => one / Math.max(Math.sqrt(inner(of, of)), 1e-12));
    return x.shape.length === 1 ? vectorOf(unit(x.data)) : rowsOf(rows(x).map(unit), width(x));
  },
  tanh,
  sigmoid,
  relu: (x) => map(x, (one) => Math.max(one, 0)),
  softmax: (x) => vectorOf(WEIGHTS.softmax(x.data)),
  sparsemax: (x) => vectorOf(WEIGHTS.sparsemax(x.data)),
  entmax: (x, { alpha }) => vectorOf(WEIGHTS.entmax(x.data, alpha)),
  sigmoid_weights: (x, offset) => vectorOf(WEIGHTS.sigmoid_weights(x.data, offset.data[0])),
  softmax_with_sink: (x, sink) => vectorOf(WEIGHTS.softmax_with_sink(x.data, sink.data[0])),
  tempered_softmax: (x, logTemperature) => vectorOf(WEIGHTS.tempered_softmax(x.data, logTemperature.data[0])),
  top_k: (x, { k }) => vectorOf(WEIGHTS.top_k(x.data, k)),
  around_best: (x, { reach }) => vectorOf(WEIGHTS.around_best(x.data, reach)),
  greatest: (x) => vectorOf(WEIGHTS.greatest(x.data)),
  /** Minus infinity where nothing may be seen. */
  mask: (scores, visible) => pairwise(scores, visible, (score, isVisible) => (isVisible > 0 ? score : -Infinity)),
  /** 1 within `width` positions of the centre, else 0. */
  window: (positions, centre, { width: distance }) => map(positions, (i) => (Math.abs(i - centre.data[0]) <= distance ? 1 : 0)),
  gaussian: (positions, centre, { sigma }) => map(positions, (i) => Math.exp(-((i - centre.data[0]) ** 2) / (2 * sigma ** 2))),
  /** A share of a sentence's length as a position, no farther than its last token. */
  centre: (share, { length }) => map(share, (one) => Math.min(length * one, length - 1)),
  /** sigmoid or tanh of the sum of the same part of two vectors: a gate of a cell. */
  gate: (one, other, { start, size, function: name }) => FUNCTIONS[name](add(part(one, start, size), part(other, start, size))),
  /** tanh of a part of one vector and, as far as a gate lets it, that of another: of a GRU. */
  candidate: (one, reset, other, { start }) => {
    const size = reset.data.length;
    return tanh(add(part(one, start, size), multiply(reset, part(other, start, size))));
  },
  /** (1 - z) n + z s: what a GRU's update gate makes of the candidate and the old state. */
  blend: (new_, share, old) => add(multiply(map(share, (z) => 1 - z), new_), multiply(share, old)),
  /** f C + i C̃: an LSTM's cell state. */
  two_products: (one, by, other, its) => add(multiply(one, by), multiply(other, its)),
  /** o tanh(C): an LSTM's hidden state. */
  gated_tanh: (opening, x) => multiply(opening, tanh(x)),
  /** The larger one of each pair of neighbours. */
  maxout: (x) => vectorOf(Array.from({ length: x.data.length / 2 }, (_, i) => Math.max(x.data[2 * i], x.data[2 * i + 1]))),
};

function columnSums(vectors, size) {
  const sums = new Float64Array(size);
  for (const each of vectors) each.forEach((one, k) => { sums[k] += one; });
  return sums;
}
