// Histories, as in attnlab/model/histories/: what an attention remembers from step to step, and what it makes of it.
//
// A record is {weights (S,), transition}: the weights of the last step, or the sum of all of them; transition is a number,
// of forward attention alone. That of chunkwise attention has in `weights` where the last step stopped, and `energies` (S,),
// those of the chunks. Axes: S source length, A keys, K filters.

import { scoreOf } from "./scores.js";
import { add, dot, join, scale, sigmoid, softmax, sum, tanh, zeros } from "./vectors.js";

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

/** A softmax over the tokens up to each, `size` at most, times how likely a step stops there. */
export function chunkSoftmax(stops, energies, size) {
  const weights = zeros(stops.length);
  stops.forEach((stop, end) => {
    if (stop === 0) return;
    const begin = Math.max(end - size + 1, 0);
    softmax(energies.slice(begin, end + 1)).forEach((share, i) => (weights[begin + i] += stop * share));
  });
  return weights;
}

/** What does nothing but remember the last weights. */
class History {
  constructor(config, weights) {
    Object.assign(this, { config, own: weights });
  }

  first(positions) {
    return noWeights(positions);
  }

  /** What the other methods get of what is remembered, given the query of the step and the values (S, D). */
  before(past, query, values) {
    return past;
  }

  /** What `weigh` and `after` get of it, given the scores (S,). */
  readScores(past, scores) {
    return past;
  }

  /** What `after` gets where an intervention has set other weights (S,). */
  overrule(past, weights) {
    return past;
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
    return this.stops(scores, weights);
  }

  /** Where a step stops, (S,), of its scores and of where the last one did. */
  stops(scores, before) {
    const energy = Array.from(scores, (one) => one + this.own.number("r"));
    return (this.config.hard ? firstChosen : meanChoice)(energy, before);
  }
}

/** A softmax over the tokens up to where the reading stops. */
class Mocha extends Monotonic {
  before(past, query, values) {
    const score = scoreOf({ score: "BahdanauScore", projected: false }, this.own.of("chunk_score"));
    return { ...past, energies: score.energies(query, values.map((h) => score.projectKey(h))) };
  }

  readScores(past, scores) {
    return { ...past, weights: this.stops(scores, past.weights) };
  }

  overrule(past, weights) {
    return { ...past, weights };
  }

  weigh(scores, normalise, { weights, energies }) {
    const seen = energies.map((energy, i) => (scores[i] === -Infinity ? -Infinity : energy));
    return chunkSoftmax(weights, seen, this.config.chunk_size);
  }

  after(past) {
    return past;
  }
}

const HISTORIES = { Coverage, LastWeights, LocationSensitive, Forward, ForwardWithAgent, Monotonic, Mocha };

/** The history of an attention's config; null for an attention without. */
export const historyOf = (config, weights) => (config === null ? null : new HISTORIES[config.name](config, weights));
