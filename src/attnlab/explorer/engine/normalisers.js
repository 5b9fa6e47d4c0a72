// Normalisers, as in attnlab/model/normalisers/: from scores (S,) to attention weights (S,). A score is minus infinity
// where nothing may be seen, and the weight there is 0.

import { argmax, softmax } from "./vectors.js";

const shifted = (scores) => {
  const most = Math.max(...scores);
  return Array.from(scores, (one) => one - most);
};

/** w_i = max(0, z_i - tau), with the one tau that makes the sum 1. */
function sparsemax(scores) {
  const z = shifted(scores);
  // 1. The support is the longest run of sorted scores with 1 + k z_(k) > sum_{j<=k} z_(j).
  const ordered = [...z].sort((one, other) => other - one);
  let [size, ofSupport, total] = [0, 0, 0];
  ordered.forEach((one, i) => {
    total += one;
    if (1 + (i + 1) * one > total) [size, ofSupport] = [i + 1, total];
  });
  // 2. tau makes the weights of the support sum to 1.
  const tau = (ofSupport - 1) / size;
  return Float32Array.from(z, (one) => Math.max(one - tau, 0));
}

/** w_i = max(0, (alpha - 1) z_i - tau)^(1 / (alpha - 1)), with the one tau that makes the sum 1, found by halving. */
function entmax(scores, alpha) {
  const x = shifted(scores).map((one) => (alpha - 1) * one);
  const weights = (tau) => x.map((one) => Math.max(one - tau, 0) ** (1 / (alpha - 1)));
  const sum = (values) => values.reduce((total, one) => total + one, 0);
  let [below, above] = [-1, 0];
  for (let i = 0; i < 60; i++) {
    const middle = (below + above) / 2;
    if (sum(weights(middle)) > 1) below = middle;
    else above = middle;
  }
  return Float32Array.from(weights(below));
}

/** w_i = sigmoid(z_i + b - log n), with n the number of tokens that may be seen. */
function sigmoidWeights(scores, b) {
  const n = scores.filter(Number.isFinite).length;
  return Float32Array.from(scores, (z) => 1 / (1 + n * Math.exp(-z - b)));
}

/** w_i = exp(z_i) / (exp(b) + sum_j exp(z_j)). */
const softmaxWithSink = (scores, b) => softmax(Float64Array.of(...scores, b)).subarray(0, scores.length);

/** softmax(z / exp(a)) */
const temperedSoftmax = (scores, a) => softmax(Float64Array.from(scores, (z) => z / Math.exp(a)));

/** A softmax over the k greatest scores, and those that equal the last of them. */
function topK(scores, k) {
  const least = [...scores].sort((one, other) => other - one)[Math.min(k, scores.length) - 1];
  return softmax(Float64Array.from(scores, (z) => (z < least ? -Infinity : z)));
}

/** 1 for the greatest score, else 0. */
function hard(scores) {
  const best = argmax(scores);
  return Float32Array.from(scores, (_, i) => Number(i === best));
}

/** A softmax over the tokens within `reach` of the first one with the greatest score. */
function aroundBest(scores, reach) {
  const best = argmax(scores);
  return softmax(scores.map((one, i) => (Math.abs(i - best) > reach ? -Infinity : one)));
}

/** The operations between symbols that make weights of scores, by their names there. */
export const WEIGHTS = {
  softmax: (x) => softmax(x),
  sparsemax,
  entmax,
  sigmoid_weights: sigmoidWeights,
  softmax_with_sink: softmaxWithSink,
  tempered_softmax: temperedSoftmax,
  top_k: topK,
  around_best: aroundBest,
  greatest: hard,
};

/**
 * Of each class its operation, its formula (the weights, the scores, what it learns), and the number beside the scores:
 * what it learns, with its name and what it is, or a setting.
 */
const NORMALISERS = {
  Softmax: { operation: "softmax", formula: "{} = softmax({})" },
  Sparsemax: { operation: "sparsemax", formula: "{} = sparsemax({})" },
  Entmax: { operation: "entmax", formula: "{} = entmax({})", setting: "alpha" },
  Sigmoid: { operation: "sigmoid_weights", formula: "{} = σ({} + {} − log n)", learned: ["b", "b_α", "normaliser_offset"] },
  SoftmaxWithSink: {
    operation: "softmax_with_sink",
    formula: "{} = exp({}) / (exp({}) + Σ exp)",
    learned: ["b", "b_α", "normaliser_sink"],
  },
  LearnedTemperature: {
    operation: "tempered_softmax",
    formula: "{} = softmax({} / exp({}))",
    learned: ["a", "log_τ", "normaliser_temperature"],
  },
  TopK: { operation: "top_k", formula: "{} = top-k({})", setting: "k" },
  AroundBest: { operation: "around_best", formula: "{} = softmax around max {}", setting: "reach" },
  Hard: { operation: "greatest", formula: "{} = one-hot(argmax {})" },
  Reinforce: { operation: "greatest", formula: "{} = one-hot(argmax {})" },
};

/** The number beside the scores. */
function numberOf(config, weights, { learned, setting }) {
  if (learned) return weights.number(learned[0]);
  // Each head may have learned an alpha of its own.
  if (setting === "alpha" && weights.has("a")) return 1 + 1 / (1 + Math.exp(-weights.number("a")));
  return config[setting];
}

/** A model's normaliser: the function from scores to weights, and how it is written. */
export function normaliserOf(config, weights) {
  const written = NORMALISERS[config.name];
  const number = numberOf(config, weights, written);
  const settings = written.setting ? { [written.setting]: number } : {};
  return { ...written, number, settings, weigh: (scores) => WEIGHTS[written.operation](scores, number) };
}
