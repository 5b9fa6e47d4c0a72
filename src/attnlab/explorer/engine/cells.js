// Recurrent cells, and a stack of them, as in attnlab/model/decoders/cells.py; the encoder's layers have the same formulas.
//
// A cell's `step` takes the input x (I,) and the state {hidden (H,), cell (H,) or null}, and returns the state after.

import { add, sigmoid, split, tanh, times } from "./vectors.js";

class Cell {
  /**
   * @param {Weights} weights of the cell
   * @param {string} suffix of their names: `_l0` in torch's layers, none in torch's cells
   */
  constructor(weights, suffix = "") {
    this.W = weights.matrix(`weight_ih${suffix}`);
    this.U = weights.matrix(`weight_hh${suffix}`);
    this.b = weights.vector(`bias_ih${suffix}`);
    this.bHidden = weights.vector(`bias_hh${suffix}`);
    this.size = this.U.columns;
  }

  fromInput(x) {
    return add(this.W.times(x), this.b);
  }

  fromHidden(hidden) {
    return add(this.U.times(hidden), this.bHidden);
  }
}

/** h' = tanh(W x + b + U h + b'). */
export class RNNCell extends Cell {
  step(x, { hidden }) {
    return { hidden: tanh(add(this.fromInput(x), this.fromHidden(hidden))), cell: null };
  }
}

/** h' = (1 - z) n + z h, with n = tanh(W_n x + b_n + r (U_n h + b'_n)) and gates r and z. */
export class GRUCell extends Cell {
  step(x, { hidden }) {
    const [xR, xZ, xN] = split(this.fromInput(x), 3);
    const [hiddenR, hiddenZ, hiddenN] = split(this.fromHidden(hidden), 3);
    const r = sigmoid(add(xR, hiddenR));
    const z = sigmoid(add(xZ, hiddenZ));
    const n = tanh(add(xN, times(r, hiddenN)));
    return { hidden: n.map((one, i) => one + z[i] * (hidden[i] - one)), cell: null };
  }
}

/** c' = f c + i tanh(g), h' = o tanh(c'). */
export class LSTMCell extends Cell {
  step(x, { hidden, cell }) {
    const [i, f, g, o] = split(add(this.fromInput(x), this.fromHidden(hidden)), 4);
    const after = add(times(sigmoid(f), cell), times(sigmoid(i), tanh(g)));
    return { hidden: times(sigmoid(o), tanh(after)), cell: after };
  }
}

export const CELLS = { rnn: RNNCell, gru: GRUCell, lstm: LSTMCell };

/**
 * Cells one above the other. The state of a stack has a vector a layer, the last one the top:
 * {hidden: [(H,)], cell: [(H,)] or null}.
 */
export class StackedCell {
  constructor({ cell, layers }, weights) {
    this.cells = Array.from({ length: layers }, (_, i) => new CELLS[cell](weights.of(`cells.${i}`)));
  }

  /** One step of all layers. */
  step(x, state) {
    const after = [];
    this.cells.forEach((cell, layer) => {
      const below = layer === 0 ? x : after[layer - 1].hidden;
      after.push(cell.step(below, { hidden: state.hidden[layer], cell: state.cell?.[layer] ?? null }));
    });
    return stackOf(after);
  }
}

/** The state of a stack, of each layer's state. */
export function stackOf(layers) {
  const hasCell = layers[0].cell !== null;
  return { hidden: layers.map(({ hidden }) => hidden), cell: hasCell ? layers.map(({ cell }) => cell) : null };
}
