// Attention(Q, K, V), as in attnlab/model/attention/attention.py: score, mask, normalise, average; one head or several.
//
// Axes: S source length, H query, A keys, D values and context, N heads.

import { historyOf } from "./histories.js";
import { changesWeights, shown, weighUnder } from "./intervention.js";
import { normaliserOf } from "./normalisers.js";
import { reweigh, scopeOf } from "./scopes.js";
import { scoreOf } from "./scores.js";
import { join, split, weightedSum } from "./vectors.js";

/** context = normalise(score(Q, K)) V. The score is minus infinity wherever nothing may be seen. */
export class Attention {
  heads = 1;

  constructor(config, weights) {
    this.score = scoreOf(config, weights.of("score"));
    this.normaliser = normaliserOf(config.normaliser, weights.of("normaliser"));
    this.scope = scopeOf(config.scope, weights.of("scope"));
    this.history = historyOf(config.history, weights.of("history"));
  }

  /** Whether the score goes by positions, so that there are no keys. */
  get byPosition() {
    return this.score.byPosition ?? false;
  }

  /** Encoder outputs (S, D) and positions (S,) -> {keys (S, A), values (S, D)} of each head. */
  project(outputs, positions) {
    this.score.checkPositions?.(positions);
    const keys = (this.score.byPosition ? positions : outputs).map((key) => this.score.projectKey(key));
    return [{ keys, values: outputs }];
  }

  /** What each head remembers before the first step; null without a history. */
  firstPasts(positions) {
    return this.history === null ? null : [this.history.first(positions)];
  }

  /**
   * Attend from a query to every key.
   *
   * @param {Float32Array} query (H,)
   * @param {object} memory as `remember` makes it
   * @param {number} t the step
   * @param {object[]|null} pasts what each head remembers; null without a history
   * @returns {{context, weights, query, heads}} context (D,); weights (S,) of each head; heads, the numbers that each head
   *   computed, with its `past` after the step
   */
  attend(query, memory, t, pasts) {
    const head = this.attendHead(query, memory, 0, t, pasts?.[0]);
    return { context: head.context, weights: [head.weights], query, heads: [head] };
  }

  /** One head: its context (D,), weights (S,), energies (S,), and what may be seen (S,). */
  attendHead(query, memoryOfAll, number, t, past = null) {
    const memory = memoryOfHead(memoryOfAll, number);
    const { values } = memory.projected[number];
    let { keys } = memory.projected[number];
    // 1. Let the keys know what was seen.
    const history = past === null ? null : this.history;
    let seen = history === null ? null : history.before(past, query, values);
    if (history !== null) keys = history.changeKeys(keys, seen);
    // 2. Score every key, and hide pads and what lies outside of the window.
    const energies = this.score.energies(query, keys);
    const window = this.scope.window(query, t, memory.positions, memory.length);
    const visible = keys.map((_, i) => (memory.mask?.[i] ?? true) && (window.inside?.[i] ?? true));
    const scores = energies.map((energy, i) => (visible[i] ? energy : -Infinity));
    // 3. Make weights of the scores, and average the values by them.
    const normalise = (z) => this.normaliser.weigh(z);
    let made = null;
    const weigh = (z) => {
      if (history !== null) seen = history.readScores(seen, z);
      made = reweigh(history === null ? normalise(z) : history.weigh(z, normalise, seen), window);
      return made;
    };
    const change = memory.intervention;
    const weights = change === null ? weigh(scores) : weighUnder(change, scores, weigh, memory.positions, t);
    const context = weightedSum(weights, values);
    if (history !== null && !weights.every((weight, i) => weight === made?.[i])) seen = history.overrule(seen, weights);
    const after = history === null ? null : history.after(seen, query, context, weights);
    return { query, energies, visible, weights, context, emphasis: window.emphasis, past: after };
  }
}

/** concat(head_1, ..., head_N) W_O with head_i = Attention(Q W_Q,i, K W_K,i, V W_V,i). */
export class MultiHeadAttention {
  byPosition = false; // such a score has no keys that heads could project

  constructor(config, weights) {
    this.heads = config.heads;
    for (const name of ["W_Q", "W_K", "W_V", "W_O"]) this[name] = weights.linear(name);
    const own = { ...config, heads: null };
    this.attentions = Array.from({ length: config.heads }, (_, i) => new Attention(own, weights.of(`attentions.${i}`)));
    this.history = this.attentions[0].history; // the heads have one of a kind
  }

  project(outputs) {
    const keys = outputs.map((h) => split(this.W_K(h), this.heads)); // (S, N, size)
    const values = outputs.map((h) => split(this.W_V(h), this.heads));
    return this.attentions.map(({ score }, number) => ({
      keys: keys.map((parts) => score.projectKey(parts[number])),
      values: values.map((parts) => parts[number]),
    }));
  }

  firstPasts(positions) {
    return this.history === null ? null : this.attentions.map(({ history }) => history.first(positions));
  }

  attend(query, memory, t, pasts) {
    const queries = split(this.W_Q(query), this.heads);
    const heads = this.attentions.map((attention, number) => attention.attendHead(queries[number], memory, number, t, pasts?.[number]));
    return { context: this.W_O(join(heads.map(({ context }) => context))), weights: heads.map(({ weights }) => weights), query, heads };
  }
}

/** The attention of a model's config; null for a model without. */
export function attentionOf(config, weights) {
  if (config === null) return null;
  return config.heads === null ? new Attention(config, weights) : new MultiHeadAttention(config, weights);
}

/** What one head looks at, under the intervention where that goes for it. */
export function memoryOfHead(memory, number) {
  const change = memory.intervention;
  if (change === null || change.heads === null) return memory;
  if (!change.heads.includes(number)) return { ...memory, intervention: null };
  return { ...memory, mask: withoutHidden(memory.mask, change, memory.positions) };
}

/** The mask (S,), null for none, without what an intervention hides. */
function withoutHidden(mask, change, positions) {
  if (change.hide.length === 0) return mask;
  return shown(change, positions).map((isShown, i) => isShown && (mask?.[i] ?? true));
}

/** Positions of a mask (S,): 0, 1, ... over the real tokens, then on over the pads, wherever they stand. */
export function countPositions(mask) {
  let [real, pads] = [0, mask.filter(Boolean).length];
  return mask.map((isReal) => (isReal ? real++ : pads++));
}

/**
 * What a decoder may look at: the encoded source, its keys projected once for all steps.
 *
 * @param {{outputs, final}} encoded as the encoder returns it
 * @param {boolean[]} sourceMask true at real tokens, (S,)
 * @param {boolean} isMasked false lets the attention weigh pads, unless the intervention says otherwise
 * @param {Attention|MultiHeadAttention|null} attention
 * @param {object} given an intervention, as `interventionOf` makes it
 */
export function remember(encoded, sourceMask, isMasked, attention, given) {
  // One head gets each change, whether it is named or not.
  const intervention = attention?.heads > 1 ? given : { ...given, heads: null };
  const masked = intervention.mask_pads ?? isMasked;
  const positions = countPositions(sourceMask);
  // A masked pad may stand beyond the longest source; its position is never looked at.
  const seen = positions.map((position, i) => (masked && !sourceMask[i] ? 0 : position));
  const mask = masked ? sourceMask : null;
  const isChanged = changesWeights(intervention);
  // What goes for some of the heads alone waits for `memoryOfHead`.
  const hidesFromAll = isChanged && intervention.heads === null;
  return {
    outputs: encoded.outputs,
    summary: encoded.final.hidden.at(-1),
    projected: attention === null ? null : attention.project(encoded.outputs, seen),
    mask: hidesFromAll ? withoutHidden(mask, intervention, positions) : mask,
    positions,
    length: sourceMask.filter(Boolean).length,
    intervention: isChanged ? intervention : null,
  };
}

/** The positions that a score by position is given, as the model gives them: a pad that the mask hides has the first. */
export function scorePositions({ mask, positions, length }) {
  return positions.map((position, i) => (mask !== null && !mask[i] && position >= length ? 0 : position));
}
