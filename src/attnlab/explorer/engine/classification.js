// Analyses of a classifier, as in attnlab/tasks/classification/: analysis.py and step_numbers.py.

import { Classifier } from "./classifier.js";
import { changesWeights, checkAttention, checkSteps, interventionOf } from "./intervention.js";
import { readSource, rounded } from "./source.js";
import { scoresOnLook, sheetOfLook } from "./step_numbers.js";
import { Tokenizer } from "./text.js";
import { argmax } from "./vectors.js";

/** A trained model with its tokenizer. */
export class SentenceClassifier {
  /** @param {object} exported as attnlab/explorer/exported_model.py writes it */
  constructor(exported, weights) {
    this.model = new Classifier(exported.model, weights);
    this.sourceTokenizer = new Tokenizer(exported.source_tokenizer);
    this.cleaning = exported.cleaning;
    this.labels = exported.labels;
  }
}

/** The probability of each class and the weight of each token. */
export function classify(classifier, { text, intervene = {}, edit = {} }) {
  const { source, found } = look(classifier, text, intervene, edit);
  const { labels } = classifier;
  return {
    source: source.tokens,
    label: labels[argmax(found.logProbabilities)],
    probabilities: Object.fromEntries(labels.map((label, i) => [label, Math.exp(found.logProbabilities[i])])),
    attention: rounded(found.weights),
  };
}

/** All numbers of a classifier's look at a sentence. */
export function stepNumbers(classifier, { text, intervene = {}, edit = {}, masking = "before", recurrence = null, windows = null }) {
  const { config, weights, padding } = classifier.model;
  const atPads = recurrence ?? padding.recurrence;
  const { source, found } = look(classifier, text, intervene, edit, atPads);
  const taken = { config, weights, memory: found.memory, heads: found.heads, query: found.query, tokens: source.tokens, masking };
  const sheet = sheetOfLook(taken, classifier.labels).asJson(windows);
  return { source: source.tokens, recurrence: atPads, ...sheet, scores: scoresOnLook(taken) };
}

/** What the classifier reads of a text, and what it finds. */
function look(classifier, text, intervene, edit, recurrence = undefined) {
  const intervention = interventionOf(intervene);
  if (Object.keys(intervention.force).length > 0) throw new Error("force: a classifier writes no tokens that could be forced");
  if (intervention.patch !== null) throw new Error("intervene: patch goes with models that translate alone");
  if (changesWeights(intervention)) checkAttention(intervention, classifier.model.attention);
  checkSteps(intervention, 1);
  const source = readSource(classifier, text, edit, intervention);
  return { source, found: classifier.model.classify(source.ids, source.mask, intervention, recurrence) };
}
