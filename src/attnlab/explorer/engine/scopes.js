// Scopes, as in attnlab/model/scopes.py: which source tokens the attention may look at in a step.
//
// `window` takes the query (H,), the step t, and positions (S,) and number of the source tokens. It returns {inside, emphasis,
// renormalise}: inside (S,) says what may be seen, null for all; emphasis (S,) multiplies the weights, null for none.

import { dot, sum, tanh } from "./vectors.js";

/** Every source token may be seen at every step. */
class GlobalScope {
  window() {
    return { inside: null, emphasis: null, renormalise: false };
  }
}

/** Source tokens within [p_t - D, p_t + D], with p_t = t; behind the end of the source p_t stays at its last token. */
class LocalM {
  constructor({ width }) {
    this.width = width;
  }

  window(query, t, positions, length) {
    const centre = Math.min(t, length - 1);
    return { inside: positions.map((i) => Math.abs(i - centre) <= this.width), emphasis: null, renormalise: false };
  }
}

/**
 * Source tokens within [p_t - D, p_t + D], those near p_t favoured: p_t = n sigmoid(v · tanh(W s_t)), and the weights are
 * multiplied by exp(-(i - p_t)^2 / (2 sigma^2)) with sigma = D/2.
 */
class LocalP {
  constructor({ width, renormalise }, weights) {
    Object.assign(this, { width, renormalise });
    this.W = weights.linear("W");
    this.v = weights.vector("v");
  }

  window(query, t, positions, length) {
    const share = 1 / (1 + Math.exp(-dot(this.v, tanh(this.W(query)))));
    const centre = Math.fround(Math.min(length * share, length - 1));
    const sigma = this.width / 2;
    return {
      inside: positions.map((i) => Math.abs(i - centre) <= this.width),
      emphasis: Float32Array.from(positions, (i) => Math.exp(-((i - centre) ** 2) / (2 * sigma ** 2))),
      renormalise: this.renormalise,
    };
  }
}

const SCOPES = { GlobalScope, LocalM, LocalP };

export const scopeOf = (config, weights) => new SCOPES[config.name](config, weights);

/** Weights (S,) as a window changes them after they were normalised. */
export function reweigh(weights, { emphasis, renormalise }) {
  if (emphasis === null) return weights;
  const changed = weights.map((weight, i) => weight * emphasis[i]);
  if (!renormalise) return changed;
  const total = sum(changed) || 1; // rows of zeros stay zeros
  return changed.map((weight) => weight / total);
}
