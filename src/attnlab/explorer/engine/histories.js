// Histories, as in attnlab/model/histories/: what an attention remembers from step to step, and what it makes of it.
//
// A record is {weights (S,), transition}: the weights of the last step, or the sum of all of them; transition is a number,
// of forward attention alone. Axes: S source length, A keys, K filters.

import { add, dot, join, scale, sigmoid, sum, tanh, zeros } from "./vectors.js";

export const LEAST = 1e-15; // of what forward attention can reach

const noWeights = (positions) => ({ weights: zeros(positions.length) });
const atFirstToken = (positions) => ({ weights: Float32Array.from(positions, (position) => (position === 0 ? 1 : 0)) });

/** Of each place of a vector (S,) the numbers of its neighbourhood: (S, width), 0 outside. */
export const around = (x, width) => Array.from({ length: x.length }, (_, i) =>
  Float64Array.from({ length: width }, (_, k) => x[i + k - Math.floor(width / 2)] ?? 0));

/** The number of the place before; 0 at the first. */
export const oneBefore = (x) => x.map((_, i) => (i === 0 ? 0 : x[i - 1]));

/** 1 at the first number from 0 up, from where the last step stopped; else 0. */
export function firstChosen(energy, before) {
  const chosen = zeros(energy.length);
  const middle = sum(before) / 2;
  let passed = 0;
  for (let i = 0; i < energy.length; i++) {
    passed += before[i];
    if (passed > 0 && passed >= middle && energy[i] >= 0) {
      chosen[i] = 1;
      break;
    }
  }
  return chosen;
}

/** p_i sum_k before_k prod_{k <= l < i} (1 - p_l), with p = sigmoid(energy). */
export function meanChoice(energy, before) {
  let comesBy = 0;
  return Float32Array.from(sigmoid(Float64Array.from(energy)), (p, i) => {
    comesBy += before[i];
    const weight = p * comesBy;
    comesBy *= 1 - p;
    return weight;
  });
}

/** What does nothing but remember the last weights. */
class History {
  constructor(config, weights) {
    Object.assign(this, { config, own: weights });
  }

  first(positions) {
    return noWeights(positions);
  }

  /** The keys (S, A) as the score of this step reads them. */
  changeKeys(keys) {
    return keys;
  }

  /** The weights (S,) of scores (S,); `normalise` makes those of the normaliser. */
  weigh(scores, normalise) {
    return normalise(scores);
  }

  after(past, query, context, weights) {
    return { ...past, weights };
  }
}

/** k + w α_{t-1}. */
class LastWeights extends History {
  changeKeys(keys, { weights }) {
    const w = this.own.vector("w.weight");
    return keys.map((key, i) => add(key, scale(weights[i], w)));
  }
}

/** k + w sum_t' α_t'. */
class Coverage extends LastWeights {
  after(past, query, context, weights) {
    return { weights: add(past.weights, weights) };
  }
}

/** k + U f_t, with f_t = F * α_{t-1}. */
class LocationSensitive extends History {
  changeKeys(keys, { weights }) {
    const [F, U] = [this.own.matrix("F"), this.own.matrix("U.weight")];
    return around(weights, F.columns).map((near, i) => add(keys[i], U.times(F.times(near))));
  }
}

/** α ∝ ((1 - u) α_{t-1}(i) + u α_{t-1}(i - 1)) y(i), or y where that sums to next to nothing. */
class Forward extends History {
  first(positions) {
    return { ...atFirstToken(positions), transition: 0.5 };
  }

  weigh(scores, normalise, { weights, transition: u }) {
    const y = normalise(scores);
    const before = oneBefore(weights);
    const reached = y.map((one, i) => ((1 - u) * weights[i] + u * before[i]) * one);
    const total = sum(reached);
    return total > LEAST ? scale(1 / total, reached) : y;
  }
}

/** u_t = sigmoid(v · tanh(W [c; q] + b) + b'). */
class ForwardWithAgent extends Forward {
  after(past, query, context, weights) {
    const hidden = tanh(this.own.linear("W")(join([context, query])));
    const energy = dot(this.own.vector("v.weight"), hidden) + this.own.number("v.bias");
    return { weights, transition: 1 / (1 + Math.exp(-energy)) };
  }
}

/** The first token with e + r >= 0 from where the last step stopped, or the mean over all choices. */
class Monotonic extends History {
  first(positions) {
    return atFirstToken(positions);
  }

  weigh(scores, normalise, { weights }) {
    const energy = Array.from(scores, (one) => one + this.own.number("r"));
    return (this.config.hard ? firstChosen : meanChoice)(energy, weights);
  }
}

const HISTORIES = { Coverage, LastWeights, LocationSensitive, Forward, ForwardWithAgent, Monotonic };

/** The history of an attention's config; null for an attention without. */
export const historyOf = (config, weights) => (config === null ? null : new HISTORIES[config.name](config, weights));
