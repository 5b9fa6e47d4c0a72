// Bridges, as in attnlab/model/bridges.py: the decoder's first state, made of the encoded source.
//
// A state is {hidden: [(H,)], cell: [(H,)] or null}, a vector a layer.

import { mean, split, tanh, zeros } from "./vectors.js";

/** s_0 = 0. */
export class ZeroBridge {
  constructor({ layers, size, has_cell: hasCell }) {
    this.layers = Array.from({ length: layers }, () => zeros(size));
    this.hasCell = hasCell;
  }

  firstState() {
    return { hidden: this.layers, cell: this.hasCell ? this.layers : null };
  }
}

/** s_0 = the encoder's final state, layer by layer. */
class CopyBridge {
  firstState(encoded) {
    return encoded.final;
  }
}

/** tanh(W h + b) of each layer, and W' c + b' where there is such a map; of h, where the state has no c. */
function mapped(state, hidden, cell) {
  return { hidden: state.hidden.map((h) => tanh(hidden(h))), cell: cell && (state.cell ?? state.hidden).map(cell) };
}

/** s_0 = tanh(W h + b), layer by layer, with h the encoder's final state. */
class LinearBridge {
  constructor({ has_cell: hasCell }, weights) {
    this.hidden = weights.linear("hidden");
    this.cell = hasCell ? weights.linear("cell") : null;
  }

  firstState(encoded) {
    return mapped(encoded.final, this.hidden, this.cell);
  }
}

/** s_0 = tanh(W h_1), layer by layer, with h_1 the backward state of the first token. */
class FirstBackwardBridge extends LinearBridge {
  firstState(encoded) {
    return mapped(encoded.backward, this.hidden, this.cell);
  }
}

/** s_0 = tanh(W mean(h_1, ..., h_n) + b), the mean being that over the real source tokens. */
class MeanBridge extends LinearBridge {
  constructor(config, weights) {
    super(config, weights);
    this.layers = config.layers;
  }

  firstState(encoded, sourceMask) {
    const h = mean(encoded.outputs.filter((_, i) => sourceMask[i]));
    const hidden = split(tanh(this.hidden(h)), this.layers);
    return { hidden, cell: this.cell && split(this.cell(h), this.layers) };
  }
}

const BRIDGES = { ZeroBridge, CopyBridge, LinearBridge, FirstBackwardBridge, MeanBridge };

export const bridgeOf = (config, weights) => new BRIDGES[config.name](config, weights);
