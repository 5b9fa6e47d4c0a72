// Changes of the attention, as in attnlab/model/attention/intervention.py.

import { EOS } from "./batch.js";
import { checkPatch, needsAttention, patchOf, readPatch, takesKeys } from "./patch.js";
import { randomIntegers } from "./random.js";
import { tidy } from "./text.js";

export const NO_CHANGE = { kind: null, weights: {}, temperature: 1, hide: [], mask_pads: null, force: {}, seed: 0, heads: null, patch: null };

/**
 * An intervention with all of its fields; those that are not given change nothing.
 *
 * @throws an Error with a sentence for a value out of range
 */
export function interventionOf(given) {
  const change = { ...NO_CHANGE, ...given };
  if (![null, "uniform", "permuted"].includes(change.kind)) throw new Error(`kind must be 'uniform', 'permuted' or null, got '${change.kind}'`);
  if (!(change.temperature >= 0.001 && change.temperature <= 1000)) throw new Error(`temperature must be from 0.001 to 1000, got ${change.temperature}`);
  for (const [step, row] of Object.entries(change.weights)) {
    if (!row.every((weight) => weight >= 0 && Number.isFinite(weight))) {
      throw new Error(`weights of step ${step} must be finite and at least 0, got [${row.join(", ")}]`);
    }
  }
  if (change.heads !== null) checkHeads(change);
  if (change.patch !== null) change.patch = patchOf(change.patch);
  return change;
}

function checkHeads(change) {
  const { heads, kind, weights, hide, temperature, mask_pads: maskPads } = change;
  if (heads.length === 0 || heads.some((head) => head < 0)) throw new Error(`heads must name heads from 0 on, or be null, got [${heads.join(", ")}]`);
  if (maskPads !== null) throw new Error("mask_pads goes for all heads; leave heads at null");
  if (kind === null && Object.keys(weights).length === 0 && hide.length === 0 && temperature === 1) {
    throw new Error("heads names heads, but nothing is changed there; give kind, weights, temperature or hide, too");
  }
}

/** The intervention with the sentence of its patch read, where it has one. */
export function withPatch(change, { sourceTokenizer, cleaning }) {
  if (change.patch === null) return change;
  const ids = [...sourceTokenizer.encode(tidy(change.patch.text, cleaning)), EOS];
  return { ...change, patch: readPatch(change.patch, ids) };
}

/** Refuse an intervention where an attention lacks what is to be changed. */
export function checkAttention({ heads, patch }, attention) {
  for (const head of heads ?? []) {
    if (head >= attention.heads) throw new Error(`intervene: heads must be below ${attention.heads}, the model's heads, got ${head}`);
  }
  if (patch !== null && takesKeys(patch) && attention.byPosition) throw new Error("intervene: patch takes keys, but the score of this model goes by positions");
}

/** False where it needs no attention: nothing is changed, or tokens are forced alone. */
export function changesWeights({ kind, weights, hide, temperature, mask_pads: maskPads, patch }) {
  const changesOwn = kind !== null || Object.keys(weights).length > 0 || hide.length > 0 || temperature !== 1 || maskPads !== null;
  return changesOwn || (patch !== null && needsAttention(patch));
}

/** The least number of target tokens that have all steps that it names. */
export const stepsOf = ({ weights, force }) => 1 + Math.max(-1, ...Object.keys(weights).map(Number), ...Object.keys(force).map(Number));

/** Refuse an intervention that names a position that a source of this length, `<eos>` included, does not have. */
export function checkSource({ hide, weights, patch }, length) {
  const positions = hide === "all" ? [] : hide;
  for (const position of positions) {
    if (position >= length) throw new Error(`intervene: hide must name positions below ${length}, the source's tokens, got ${position}`);
  }
  for (const [step, row] of Object.entries(weights)) {
    if (row.length !== length) {
      throw new Error(`intervene: weights of step ${step} must be ${length}, one for each source token, got ${row.length}`);
    }
  }
  if (patch !== null) checkPatch(patch, length);
}

/** Refuse an intervention that names a step behind a target of this length. */
export function checkSteps(change, length) {
  if (stepsOf(change) > length) {
    throw new Error(`intervene: weights and force must name steps below ${length}, the most tokens of this target, got ${stepsOf(change) - 1}`);
  }
}

/** Whether a position may be seen, (S,) of each position. */
export const shown = ({ hide }, positions) => positions.map((position) => hide !== "all" && !hide.includes(position));

/**
 * The attention weights in place of `weigh(scores)`.
 *
 * @param {Float32Array} scores (S,), minus infinity where nothing may be seen
 * @param {function} weigh makes weights of scores
 * @param {number[]} positions (S,) of each source token
 * @param {number} t the step
 */
export function weighUnder(change, scores, weigh, positions, t) {
  const given = change.weights[t];
  if (given !== undefined) return Float32Array.from(positions, (position) => given[position] ?? 0);

  const visible = Array.from(scores, (score) => Number.isFinite(score));
  const count = visible.filter(Boolean).length;
  if (count === 0) return new Float32Array(scores.length);
  if (change.kind === "uniform") return Float32Array.from(visible, (isVisible) => (isVisible ? 1 / count : 0));

  const weights = weigh(scores.map((score) => score / change.temperature));
  if (change.kind !== "permuted") return weights;

  // The kth token that may be seen, in the order of the sentence, gets the weight of the kth in random order.
  const drawn = randomIntegers([change.seed, t], positions.length);
  const places = positions.map((_, place) => place).filter((place) => visible[place]);
  const to = [...places].sort((one, other) => positions[one] - positions[other]);
  const rank = (place) => drawn[positions[place]];
  const of = [...places].sort((one, other) => (rank(one) < rank(other) ? -1 : 1));
  const permuted = new Float32Array(scores.length);
  to.forEach((place, k) => { permuted[place] = weights[of[k]]; });
  return permuted;
}
