// The weights of a model by the names that they have in Python: `decoder.attention.score.W.weight`.

import { add, Matrix } from "./vectors.js";

/** The named weights of a model, or of a part of it. */
export class Weights {
  /**
   * @param {Float32Array} values of all weights, one behind the other
   * @param {Object<string, [number, number[]]>} places of each name: where it starts, and its shape
   * @param {string} prefix of the part's names
   */
  constructor(values, places, prefix = "") {
    Object.assign(this, { values, places, prefix });
  }

  /** The weights of a part: `weights.of("score")`. */
  of(part) {
    return new Weights(this.values, this.places, `${this.prefix}${part}.`);
  }

  has(name) {
    return `${this.prefix}${name}` in this.places;
  }

  /** A weight as one vector, row by row. */
  vector(name) {
    const [start, shape] = this.#place(name);
    return this.values.subarray(start, start + shape.reduce((size, each) => size * each, 1));
  }

  /** A weight that is one number. */
  number(name) {
    return this.vector(name)[0];
  }

  /** @returns {Matrix} */
  matrix(name) {
    const [, [rows, columns]] = this.#place(name);
    return new Matrix(this.vector(name), rows, columns);
  }

  /** An `nn.Linear`: the function x -> W x + b; W x where it has no bias. */
  linear(name) {
    const layer = this.of(name);
    const W = layer.matrix("weight");
    if (!layer.has("bias")) return (x) => W.times(x);
    const b = layer.vector("bias");
    return (x) => add(W.times(x), b);
  }

  #place(name) {
    const place = this.places[`${this.prefix}${name}`];
    if (place === undefined) throw new Error(`the model has no weight ${this.prefix}${name}`);
    return place;
  }
}

/** The numbers of a text in base64, little endian. */
export function decodeFloats(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}
