// The scores, as in attnlab/model/attention/: how well a query goes with each key, before the softmax.
//
// `projectKey` is what depends on a key alone, made once a sentence; `energies` takes a query (H,) and the projected keys
// (S, A) and returns (S,). A score by position is given positions in place of keys.

import { add, dot, norm, scale, tanh } from "./vectors.js";

/** v · tanh(q + k) of a query with every key. */
const additive = (q, keys, v) => Float32Array.from(keys, (k) => dot(v, tanh(add(q, k))));

class Score {
  byPosition = false;

  projectKey(h) {
    return h;
  }
}

/** score(s, h) = s · h. */
class DotScore extends Score {
  energies(s, keys) {
    return Float32Array.from(keys, (h) => dot(s, h));
  }
}

/** score(s, h) = s · h / sqrt(n), with n the width of both. */
class ScaledDotScore extends Score {
  energies(s, keys) {
    return Float32Array.from(keys, (h) => dot(s, h) / Math.sqrt(s.length));
  }
}

/** score(s, h) = g s · h / (|s| |h|), with a learned scale g. */
class CosineScore extends Score {
  constructor(weights) {
    super();
    this.g = weights.number("g");
  }

  energies(s, keys) {
    const length = (x) => Math.max(norm(x), 1e-12); // as torch's `normalize`
    return Float32Array.from(keys, (h) => this.g * dot(s, h) / (length(s) * length(h)));
  }
}

/** score(s, h) = s · W h. */
class GeneralScore extends Score {
  constructor(weights) {
    super();
    this.W = weights.linear("W");
  }

  projectKey(h) {
    return this.W(h);
  }

  energies(s, keys) {
    return Float32Array.from(keys, (k) => dot(s, k));
  }
}

/** score(s, h) = g (s · W h), with a learned scale g. */
class ScaledLuongScore extends GeneralScore {
  constructor(weights) {
    super(weights);
    this.g = weights.number("g");
  }

  energies(s, keys) {
    return Float32Array.from(keys, (k) => this.g * dot(s, k));
  }
}

/** score(s, h) = v · tanh(W [s; h]): the left part of W meets the query, its right part the key. */
class ConcatScore extends Score {
  constructor(weights, { query_size: querySize }) {
    super();
    const W = weights.matrix("W.weight");
    this.ofQuery = W.slice(0, querySize);
    this.ofKey = W.slice(querySize);
    this.v = weights.vector("v");
  }

  projectKey(h) {
    return this.ofKey.times(h);
  }

  energies(s, keys) {
    return additive(this.ofQuery.times(s), keys, this.v);
  }
}

/** score(s, h) = v · tanh(W s + U h). */
class BahdanauScore extends Score {
  constructor(weights) {
    super();
    this.W = weights.linear("W");
    this.U = weights.linear("U");
    this.v = weights.vector("v");
  }

  projectKey(h) {
    return this.U(h);
  }

  energies(s, keys) {
    return additive(this.W(s), keys, this.v);
  }
}

/** score(s, h) = g v/|v| · tanh(W s + U h + b). */
class NormedBahdanauScore extends BahdanauScore {
  constructor(weights) {
    super(weights);
    this.g = weights.number("g");
  }

  energies(s, keys) {
    return additive(this.W(s), keys, scale(this.g / norm(this.v), this.v));
  }
}

/** Refuses positions of which one has no row in the W of a location score. */
export function checkPositions(positions, maxLength) {
  const longest = Math.max(...positions) + 1;
  if (longest <= maxLength) return;
  throw new Error(`model.attention.max_length is ${maxLength}, but a source of ${longest} tokens (\`<eos>\` included) `
    + "was met; raise it and train anew, or give shorter sources");
}

/** score(s, i) = (W s)_i, for the token at position i, whatever it is. */
class LocationScore extends Score {
  byPosition = true;

  constructor(weights) {
    super();
    this.W = weights.linear("W");
    this.maxLength = weights.matrix("W.weight").rows;
  }

  checkPositions(positions) {
    checkPositions(positions, this.maxLength);
  }

  projectKey(position) {
    return position;
  }

  energies(s, positions) {
    const byPosition = this.W(s);
    return Float32Array.from(positions, (i) => byPosition[i]);
  }
}

/** score(s, i) = 0: the context is the mean of the values. */
class UniformScore extends Score {
  byPosition = true;

  energies(s, positions) {
    return new Float32Array(positions.length);
  }
}

/** score(P s, R h): any score, over linear projections of query and keys to one width. */
class ProjectedScore extends Score {
  constructor(weights, config) {
    super();
    this.P = weights.linear("P");
    this.R = weights.linear("R");
    this.score = scoreOf({ ...config, projected: false }, weights.of("score"));
  }

  projectKey(h) {
    return this.score.projectKey(this.R(h));
  }

  energies(s, keys) {
    return this.score.energies(this.P(s), keys);
  }
}

const SCORES = { DotScore, ScaledDotScore, CosineScore, GeneralScore, ScaledLuongScore, ConcatScore, BahdanauScore,
  NormedBahdanauScore, LocationScore, UniformScore };

/** The score of an attention, with the projection that may surround it. */
export function scoreOf(config, weights) {
  if (config.projected) return new ProjectedScore(weights, config);
  return new SCORES[config.score](weights, config);
}
