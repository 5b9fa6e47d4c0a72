// The recurrent encoder, as in attnlab/model/encoders/recurrent.py.
//
// Axes: S source length, D encoder output, L layers, H units of one direction.

import { CELLS, stackOf } from "./cells.js";
import { add, join, scale, zeros } from "./vectors.js";

const MERGES = {
  concatenate: (forward, backward) => join([forward, backward]),
  sum: add,
  mean: (forward, backward) => scale(0.5, add(forward, backward)),
};

export class RecurrentEncoder {
  constructor({ cell, layers, bidirectional, merge, reverse_source: reverseSource }, padding, weights) {
    Object.assign(this, { padding, reverseSource, bidirectional, merge: MERGES[merge] });
    this.embedding = weights.matrix("embedding.weight");
    const direction = (name) => Array.from({ length: layers }, (_, i) => new CELLS[cell](weights.of(`${name}.${i}`), "_l0"));
    this.forwardLayers = direction("forward_layers");
    this.backwardLayers = bidirectional ? direction("backward_layers") : [];
  }

  /**
   * @param {number[]} source ids, pads among them, (S,)
   * @param {boolean[]} mask true at real tokens, (S,)
   * @param {string} recurrence what it does at pads: `skip` or `read` them
   * @returns {{outputs, final, backward}} outputs (S, D); final, the state of the stack (L, D); backward, that of the
   *   backward direction at the first token (L, H), or null
   */
  encode(source, mask, recurrence = this.padding.recurrence) {
    let x = source.map((token) => this.embedding.row(token));
    // 1. Real tokens alone are read, or pads like them.
    const all = source.map((_, place) => place);
    const places = recurrence === "skip" ? all.filter((place) => mask[place]) : all;
    const fromTheEnd = [...places].reverse();

    // 2. Layer by layer, each direction in its own order, and the two of them merged.
    const finals = [];
    const backwardFinals = [];
    this.forwardLayers.forEach((forwardLayer, layer) => {
      let { outputs, state } = readTokens(forwardLayer, x, this.reverseSource ? fromTheEnd : places);
      if (this.bidirectional) {
        const other = readTokens(this.backwardLayers[layer], x, this.reverseSource ? places : fromTheEnd);
        backwardFinals.push(other.state);
        outputs = outputs.map((output, place) => this.merge(output, other.outputs[place]));
        state = {
          hidden: this.merge(state.hidden, other.state.hidden),
          cell: state.cell === null ? null : this.merge(state.cell, other.state.cell),
        };
      }
      finals.push(state);
      x = outputs;
    });
    return { outputs: x, final: stackOf(finals), backward: this.bidirectional ? stackOf(backwardFinals) : null };
  }
}

/** One direction of one layer, the tokens taken in the order of `places`: outputs (S, H), zero where none was read. */
function readTokens(layer, x, places) {
  let state = { hidden: zeros(layer.size), cell: zeros(layer.size) };
  const outputs = x.map(() => zeros(layer.size));
  for (const place of places) {
    state = layer.step(x[place], state);
    outputs[place] = state.hidden;
  }
  return { outputs, state };
}
