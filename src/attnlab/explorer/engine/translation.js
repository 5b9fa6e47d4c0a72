// Analyses of a translation model, as in attnlab/tasks/translation/: analysis.py, beam_tree.py and step_numbers.py.
//
// Axes: T target tokens and S source tokens, both with `<eos>`; V vocabulary.

import { BOS, EOS } from "./batch.js";
import { ZeroBridge } from "./bridges.js";
import { linksOfHypothesis, placesInReference, wrongTokens } from "./edit_alignment.js";
import { changesWeights, checkAttention, interventionOf, withPatch } from "./intervention.js";
import { BeamTree, nextLogProbs, runSearch, searchWith } from "./search.js";
import { Seq2Seq } from "./seq2seq.js";
import { readSource, rounded } from "./source.js";
import { readTokens, scoresOnQuery, sheetOf, takeStep } from "./step_numbers.js";
import { tidy, Tokenizer } from "./text.js";
import { greatest } from "./vectors.js";

const TOP_TOKENS = 5; // likeliest tokens that are shown of a step
const MAX_BEAM_SIZE = 20;

/** A trained model with its tokenizers and its search. */
export class Translator {
  /** @param {object} exported as attnlab/explorer/exported_model.py writes it */
  constructor(exported, weights) {
    this.model = new Seq2Seq(exported.model, weights);
    this.sourceTokenizer = new Tokenizer(exported.source_tokenizer);
    this.targetTokenizer = new Tokenizer(exported.target_tokenizer);
    this.cleaning = exported.cleaning;
    this.search = exported.search;
  }

  /**
   * An intervention as the model takes it, with the sentence of its patch read.
   *
   * @throws an Error with a sentence where the model lacks what is to be changed
   */
  intervened(given) {
    const change = interventionOf(given);
    const { bridge, decoder: { attention } } = this.model;
    if (changesWeights(change)) {
      if (attention === null) throw new Error("intervene changes the attention, but the model has none; only force= and a patch of the state go with it");
      checkAttention(change, attention);
    }
    if (change.patch?.state && bridge instanceof ZeroBridge) {
      throw new Error("intervene: patch takes the state, but the decoder of this model starts with none (model/bridge=zero)");
    }
    return withPatch(change, this);
  }

  /** The model under an intervention, as a search takes it; recurrence as the encoder takes it. */
  under(intervention, recurrence) {
    const { model } = this;
    return {
      encode: (source, mask) => model.encode(source, mask, intervention, recurrence),
      step: (token, state, memory) => model.step(token, state, memory),
    };
  }

  /** The ids of the tokens that an intervention forces, by their steps. */
  forced({ force }) {
    try {
      return Object.fromEntries(Object.entries(force).map(([step, token]) => [step, this.#targetId(token)]));
    } catch (error) {
      throw new Error(`force: ${error.message}`);
    }
  }

  /** The id of a target token, which may have another Unicode form than the vocabulary's. */
  #targetId(token) {
    try {
      return this.targetTokenizer.idOf(token);
    } catch (error) {
      if (typeof token !== "string" || tidy(token, this.cleaning) === "") throw error;
      return this.targetTokenizer.idOf(tidy(token, this.cleaning));
    }
  }
}

/** The best translation, with the likeliest tokens of each of its steps and the attention. */
export function translate(translator, { text, intervene = {}, settings = {}, edit = {} }) {
  const intervention = translator.intervened(intervene);
  const source = readSource(translator, text, edit, intervention);
  const search = searchWith(translator.search, settings);
  const model = translator.under(intervention);
  const [best] = runSearch(search, model, source.ids, source.mask, translator.forced(intervention));
  const target = best.finished ? [...best.tokens, EOS] : best.tokens;
  const answer = readTarget(translator, model, source, target);
  return { ...answer, text: translator.targetTokenizer.decode(best.tokens), score: best.score };
}

/** How likely each token of a given target, a text or ids, is after the tokens before it. */
export function score(translator, { text, target, intervene = {}, edit = {} }) {
  const intervention = translator.intervened(intervene);
  const source = readSource(translator, text, edit, intervention);
  const { targetTokenizer: tokenizer, cleaning } = translator;
  const ids = typeof target === "string" ? [...tokenizer.encode(tidy(target, cleaning)), EOS] : target;
  const answer = readTarget(translator, translator.under(intervention), source, ids);
  return { ...answer, text: tokenizer.decode(ids) };
}

/** The passes over the steps of a given target: log-probabilities (V,), weights (S,) and heads of each. */
function stepsOf(model, source, target) {
  let { memory, state } = model.encode(source.ids, source.mask);
  const fed = [BOS, ...target.filter((token) => token !== EOS)];
  return target.map((_, t) => {
    const step = model.step(fed[t], state, memory);
    state = step.state;
    return { logProbs: nextLogProbs(step.logits), weights: step.weights, heads: step.heads };
  });
}

/** What `translate` returns, but for text and score, of a source and a given target. */
function readTarget(translator, model, source, target) {
  const { targetTokenizer: tokenizer } = translator;
  const steps = stepsOf(model, source, target);
  const attends = translator.model.decoder.attention !== null;
  return {
    source: source.tokens,
    target: tokenizer.tokens(target),
    ids: [...target],
    log_probs: steps.map(({ logProbs }, t) => rounded(logProbs[target[t]])),
    likeliest: steps.map(({ logProbs }) => likeliestTokens(logProbs, tokenizer)),
    attention: attends ? steps.map(({ weights }) => rounded(weights)) : null,
  };
}

/** [token, id, probability] of the likeliest tokens of a step, from log-probabilities (V,). */
function likeliestTokens(logProbs, tokenizer) {
  // `<pad>` and `<bos>` can never be written, so a small vocabulary has that many fewer.
  const count = Math.min(TOP_TOKENS, logProbs.length - 2);
  const ids = greatest(logProbs, count);
  const names = tokenizer.tokens(ids);
  return ids.map((id, i) => [names[i], id, rounded(Math.exp(logProbs[id]))]);
}

/** What a heat map marks of a translation: known links, and tokens unlike the reference. */
export function marks(_, { ids, reference, sure = [], possible = [] }) {
  const places = placesInReference(ids, reference);
  const isSure = ([target, source]) => sure.some((link) => link[0] === target && link[1] === source);
  return {
    sure: linksOfHypothesis(sure, places),
    possible: linksOfHypothesis(possible.filter((link) => !isSure(link)), places),
    wrong: wrongTokens(ids, reference),
  };
}

/** Every partial hypothesis that a beam search ranked. */
export function beam(translator, { text, settings = {}, intervene = {}, edit = {} }) {
  const intervention = translator.intervened(intervene);
  const source = readSource(translator, text, edit, intervention);
  // The model's own search may return more hypotheses than this beam has.
  const { size } = searchWith(translator.search, { search: "beam", ...settings, n_best: 1 });
  const search = searchWith(translator.search, { search: "beam", ...settings, n_best: size });
  if (search.size > MAX_BEAM_SIZE) throw new Error(`the tree is that of a beam search whose size is at most ${MAX_BEAM_SIZE}`);

  const tree = new BeamTree();
  const found = runSearch(search, translator.under(intervention), source.ids, source.mask, translator.forced(intervention), tree);
  const { targetTokenizer: tokenizer } = translator;
  for (const { finished, node } of found) if (!finished) tree.nodes[node].status = "cut_off";
  return {
    nodes: tree.nodes.map((node) => ({ ...node, token: node.parent === null ? "" : tokenizer.tokens([node.token])[0] })),
    hypotheses: found.map(({ node, tokens, logProb, length, score: ownScore }) =>
      ({ node, text: tokenizer.decode(tokens), log_prob: logProb, length, score: ownScore })),
    length_penalty: search.length_penalty,
    size: search.size,
  };
}

/** All numbers that one step of a given target computes. */
export function stepNumbers(translator, { text, target, step = 0, intervene = {}, edit = {}, masking = "before", recurrence = null, windows = null }) {
  const intervention = translator.intervened(intervene);
  if (intervention.patch !== null) {
    throw new Error("intervene: the formulas of a step are those of the sentence's own keys, values and state; leave patch out");
  }
  const source = readSource(translator, text, edit, intervention);
  if (!(step >= 0 && step < target.length)) {
    throw new Error(`step must be at least 0 and below ${target.length}, the tokens of this target, got ${step}`);
  }
  const atPads = recurrence ?? translator.model.padding.recurrence;
  const model = translator.under(intervention, atPads);
  const answer = readTarget(translator, model, source, target);
  const taken = takeStep(translator, model, source, readTokens(target, step), masking);
  return { ...answer, step, recurrence: atPads, ...sheetOf(taken).asJson(windows), scores: scoresOnQuery(taken) };
}
