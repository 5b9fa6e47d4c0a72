// Greedy and beam search, as in attnlab/search/, for one sentence.
//
// A model has encode(source, mask) and step(token, state, memory). A hypothesis is {tokens, score, finished}: tokens never
// hold `<eos>`, and finished says whether it came or the length limit cut the sentence off.

import { BOS, EOS, PAD } from "./batch.js";
import { argmax, greatest, logSoftmax } from "./vectors.js";

/**
 * Logits (V,) of the next token -> log-probabilities, without `<pad>` and `<bos>`, which can never be written. A forced
 * token rules out all others; where the sentence may not end yet, `<eos>` is ruled out.
 */
export function nextLogProbs(logits, mayEnd = true, forced = undefined) {
  const possible = logits.slice();
  possible[PAD] = possible[BOS] = -Infinity;
  const logProbs = logSoftmax(possible);
  if (forced !== undefined) return logProbs.map((logProb, token) => (token === forced ? logProb : -Infinity));
  if (!mayEnd) logProbs[EOS] = -Infinity;
  return logProbs;
}

/** The most tokens that may be written for a source of this length; `<eos>` is counted in both. */
function limitOf({ max_length: most, max_length_ratio: ratio, min_length: least }, sourceLength) {
  if (ratio === null) return most;
  return Math.max(Math.min(most, Math.ceil(Math.fround(sourceLength * ratio))), least + 1);
}

/** The likeliest token at each step. The score is the sum of the log-probabilities. */
export function greedySearch(settings, model, source, mask, forced = {}) {
  let { memory, state } = model.encode(source, mask);
  const limit = limitOf(settings, mask.filter(Boolean).length);
  const tokens = [];
  let [last, score] = [BOS, 0];
  for (let written = 0; written < limit && last !== EOS; written++) {
    // 1. How likely is each next token?
    const step = model.step(last, state, memory);
    const logProbs = nextLogProbs(step.logits, written >= settings.min_length, forced[written]);
    // 2. Take the likeliest one.
    last = argmax(logProbs);
    score = Math.fround(score + logProbs[last]);
    if (last !== EOS) tokens.push(last);
    // 3. Go on from there.
    state = step.state;
  }
  return [{ tokens, score, finished: last === EOS }];
}

/**
 * Beam search; the hypotheses come back best first, `n_best` of them at most.
 *
 * @param {object} settings of the search, as in conf/search
 * @param {object|null} tree is told what the search does: see `BeamTree`
 */
export function beamSearch(settings, model, source, mask, forced = {}, tree = null) {
  const { size, min_length: minLength } = settings;
  const { memory, state: first } = model.encode(source, mask);
  const limit = limitOf(settings, mask.filter(Boolean).length);
  const found = [];
  const finish = (hypothesis, hasEos) => found.push(scored(settings, hypothesis, hasEos, mask));

  let alive = [{ tokens: [], logProb: 0, state: first, weights: [], node: tree?.root ?? null }];
  for (let length = 1; length <= limit; length++) {
    // 1. Score every continuation of every partial hypothesis, and look at the likeliest of each.
    const candidates = [];
    for (const parent of alive) {
      const { logits, state, weights } = model.step(parent.tokens.at(-1) ?? BOS, parent.state, memory);
      const rows = weights === null ? [] : [...parent.weights, weights];
      const ofNext = nextLogProbs(logits, length > minLength, forced[length - 1]);
      const logProbs = ofNext.map((logProb) => parent.logProb + logProb); // (V,)
      for (const token of greatest(logProbs, 2 * size)) { // more than that no step can take
        if (Number.isFinite(logProbs[token])) candidates.push({ parent, token, logProb: logProbs[token], state, weights: rows });
      }
    }
    // 2. Take twice as many as the beam: at most `size` of them end, so `size` are left to go on.
    candidates.sort((one, other) => other.logProb - one.logProb);
    const best = candidates.slice(0, 2 * size);
    tree?.add(best, size);
    // 3. What ends among the best is a finished hypothesis.
    for (const { parent, logProb, weights, token, node } of best.slice(0, size)) {
      if (token === EOS) finish({ tokens: parent.tokens, logProb, weights, node }, true);
    }
    // 4. The best of the others go on, in the order of their scores.
    alive = best.filter(({ token }) => token !== EOS).slice(0, size)
      .map(({ parent, token, logProb, state, weights, node }) => ({ tokens: [...parent.tokens, token], logProb, state, weights, node }));
    // 5. At the limit, the best partial hypotheses replace those that are missing.
    if (length === limit) for (const hypothesis of alive.slice(0, Math.max(size - found.length, 0))) finish(hypothesis, false);
    // 6. Go on where a partial hypothesis may still be among the best `size`.
    if (alive.length === 0 || alive[0].logProb / penaltyOf(settings, length) <= worstOfBest(found, size)) break;
    if (length < limit) tree?.keep(alive);
  }
  // 7. More than `size` may have ended, several of them at once: return the best.
  return found.sort((one, other) => other.score - one.score).slice(0, settings.n_best);
}

/** The least score of the best `size`; -Infinity while some lack. */
const worstOfBest = (found, size) => found.map((each) => each.score).sort((a, b) => b - a)[size - 1] ?? -Infinity;

const penaltyOf = ({ length_penalty: alpha }, length) => ((5 + length) / 6) ** alpha;

/** A hypothesis with its score: its log-probability over the length penalty, and the coverage penalty. */
function scored(settings, { tokens, logProb, weights, node }, hasEos, mask) {
  const length = tokens.length + (hasEos ? 1 : 0);
  const beta = settings.coverage_penalty;
  const coverage = beta > 0 ? beta * logCoverage(weights, mask) : 0;
  return { tokens, score: logProb / penaltyOf(settings, length) + coverage, finished: hasEos, logProb, length, node };
}

/** sum_i log(min(sum_j p_ij, 1)) over the real source tokens (Wu et al. 2016, equation 14). */
function logCoverage(weights, mask) {
  const tiny = 1.1754943508222875e-38; // the least number above 0 in float32
  return mask.reduce((total, isReal, i) => {
    const attended = weights.reduce((sum, row) => sum + row[i], 0);
    return isReal ? total + Math.log(Math.min(Math.max(attended, tiny), 1)) : total;
  }, 0);
}

/** The partial hypotheses of a beam search as a tree, as in attnlab/tasks/translation/beam_tree.py. */
export class BeamTree {
  nodes = [{ parent: null, token: null, step: -1, log_prob: 0, status: "kept" }];

  root = 0;

  /** The candidates of a step, best first; each is given its node. */
  add(candidates, size) {
    candidates.forEach((candidate, rank) => {
      const { parent, token, logProb } = candidate;
      const ends = token === EOS && rank < size;
      candidate.node = this.nodes.length;
      this.nodes.push({ parent: parent.node, token, step: parent.tokens.length, log_prob: logProb, status: ends ? "finished" : "pruned" });
    });
  }

  /** Those that go on. */
  keep(hypotheses) {
    for (const { node } of hypotheses) this.nodes[node].status = "kept";
  }
}

// The defaults of each search, as in attnlab/tasks/translation/search_settings.py.
const SEARCHES = {
  greedy: { max_length_ratio: null, min_length: 0, replace_unknown: false, int8: false },
  beam: { size: 5, length_penalty: 1, max_length_ratio: null, coverage_penalty: 0, min_length: 0, n_best: 1, replace_unknown: false, int8: false },
};
const NAMES = { greedy: ["max_length", ...Object.keys(SEARCHES.greedy)], beam: ["max_length", ...Object.keys(SEARCHES.beam)] };

/**
 * The model's own search with some settings changed; a setting that only the other search has chooses that one.
 *
 * @param {{name: string}} own the search of the model, with its settings
 * @param {object} settings such as {beam: 3} or {search: "greedy"}
 */
export function searchWith(own, settings) {
  const { beam, search, ...given } = settings;
  if (beam !== undefined) given.size = beam;
  const fits = (name) => Object.keys(given).every((setting) => NAMES[name].includes(setting));
  const candidates = search === undefined ? [own.name, "greedy", "beam"] : [search];
  const name = candidates.find((each) => each in NAMES && fits(each));
  if (name === undefined) throw new Error(`this page has greedy and beam search, and no settings ${Object.keys(settings).join(", ")}`);
  const shared = Object.fromEntries(Object.entries(own).filter(([setting]) => NAMES[name].includes(setting)));
  const chosen = { ...SEARCHES[name], ...shared, ...given, name };
  if (chosen.replace_unknown) throw new Error("search.replace_unknown must be false, because an exported page copies no words of the source, got true");
  if (chosen.n_best > chosen.size) throw new Error(`search.n_best must be at most the beam's size, which is ${chosen.size}, got ${chosen.n_best}`);
  return chosen;
}

/** @returns hypotheses, best first */
export function runSearch(search, model, source, mask, forced, tree = null) {
  const run = search.name === "beam" ? beamSearch : greedySearch;
  return run(search, model, source, mask, forced, tree);
}
