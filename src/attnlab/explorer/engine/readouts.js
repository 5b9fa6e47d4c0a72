// Readouts, as in attnlab/model/readouts.py: from a decoder's step to what the output layer reads.
//
// `read` takes the state s_t (H,), the context c_t (D,), null where it does not go here, and the last token e(y_{t-1}) (E,).

import { add, join, tanh } from "./vectors.js";

/** What a step knows, joined; without the context where no context goes into the readout. */
const known = (hidden, context, token) => join(context === null ? [hidden, token] : [hidden, context, token]);

/** s_t as it is. */
class StateReadout {
  read(hidden) {
    return hidden;
  }
}

/** [s_t; c_t; e(y_{t-1})], joined. */
class PlainReadout {
  read(hidden, context, token) {
    return known(hidden, context, token);
  }
}

/** tanh(W [s_t; c_t; e(y_{t-1})] + b). */
class TanhReadout {
  constructor(weights) {
    this.projection = weights.linear("projection");
  }

  read(hidden, context, token) {
    return tanh(this.projection(known(hidden, context, token)));
  }
}

/** attentional_hidden_t = tanh(W_c [c_t; s_t] + b). */
class AttentionalReadout {
  constructor(weights) {
    this.projection = weights.linear("projection");
  }

  read(hidden, context) {
    return tanh(this.projection(join([context, hidden])));
  }
}

/** maxout(U s_t + V e(y_{t-1}) + C c_t + b), each unit the larger of two sums. */
class MaxoutReadout {
  constructor(weights) {
    this.U = weights.linear("U");
    this.V = weights.linear("V");
    this.C = weights.has("C.weight") ? weights.linear("C") : null;
  }

  read(hidden, context, token) {
    let sums = add(this.U(hidden), this.V(token));
    if (this.C !== null) sums = add(sums, this.C(context));
    return Float32Array.from({ length: sums.length / 2 }, (_, i) => Math.max(sums[2 * i], sums[2 * i + 1]));
  }
}

const READOUTS = { StateReadout, PlainReadout, TanhReadout, AttentionalReadout, MaxoutReadout };

export const readoutOf = (name, weights) => new READOUTS[name](weights);
