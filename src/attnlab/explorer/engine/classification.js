// Analyses of a classifier, as in attnlab/tasks/classification/: analysis.py and step_numbers.py.

import { Classifier } from "./classifier.js";
import { checkSteps, interventionOf } from "./intervention.js";
import { readSource, rounded } from "./source.js";
import { scoresOnLook, sheetOfLook } from "./step_numbers.js";
import { Tokenizer } from "./text.js";
import { argmax } from "./vectors.js";

/** A trained model with its tokenizer. */
export class SentenceClassifier {
  /** @param {object} exported as attnlab/explorer/export.py writes it */
  constructor(exported, weights) {
    this.model = new Classifier(exported.model, weights);
    this.sourceTokenizer = new Tokenizer(exported.source_tokenizer);
    this.cleaning = exported.cleaning;
    this.labels = exported.labels;
  }
}

/** The probability of each class and the weight of each token. */
export function classify(classifier, { text, intervene = {}, edit = {} }) {
  return look(classifier, { text, intervene, edit }).answer;
}

/** All numbers of a classifier's look at a sentence. */
export function stepNumbers(classifier, { text, intervene = {}, edit = {}, masking = "before", windows = null }) {
  const { answer, source, found } = look(classifier, { text, intervene, edit });
  const { config, weights } = classifier.model;
  const taken = { config, weights, memory: found.memory, heads: found.heads, tokens: source.tokens, masking };
  return { ...answer, ...sheetOfLook(taken, classifier.labels).asJson(windows), scores: scoresOnLook(taken) };
}

/** What the classifier sees of a text, and what it makes of it. */
function look(classifier, { text, intervene, edit }) {
  const intervention = interventionOf(intervene);
  if (Object.keys(intervention.force).length > 0) throw new Error("force: a classifier writes no tokens that could be forced");
  checkSteps(intervention, 1);
  const source = readSource(classifier, text, edit, intervention);
  const found = classifier.model.classify(source.ids, source.mask, intervention);
  const { labels } = classifier;
  const answer = {
    source: source.tokens,
    label: labels[argmax(found.logProbabilities)],
    probabilities: Object.fromEntries(labels.map((label, i) => [label, Math.exp(found.logProbabilities[i])])),
    attention: rounded(found.weights),
  };
  return { answer, source, found };
}
