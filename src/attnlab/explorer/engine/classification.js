// The analysis of a classifier, as in attnlab/tasks/classification/analysis.py.

import { Classifier } from "./classifier.js";
import { checkSteps, interventionOf } from "./intervention.js";
import { readSource, rounded } from "./source.js";
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
  const intervention = interventionOf(intervene);
  if (Object.keys(intervention.force).length > 0) throw new Error("force: a classifier writes no tokens that could be forced");
  checkSteps(intervention, 1);
  const source = readSource(classifier, text, edit, intervention);
  const { logProbabilities, weights } = classifier.model.classify(source.ids, source.mask, intervention);
  const { labels } = classifier;
  return {
    source: source.tokens,
    label: labels[argmax(logProbabilities)],
    probabilities: Object.fromEntries(labels.map((label, i) => [label, Math.exp(logProbabilities[i])])),
    attention: rounded(weights),
  };
}
