// The answers of an exported page: what the explorer's server answers over HTTP, computed in the page.

import { classify, SentenceClassifier, stepNumbers as stepNumbersOfLook } from "./classification.js";
import { beam, marks, score, stepNumbers, translate, Translator } from "./translation.js";
import { decodeFloats, Weights } from "./weights.js";

const KINDS = {
  translation: { Predictor: Translator, analyses: { translate, score, marks, beam, step_numbers: stepNumbers } },
  classification: { Predictor: SentenceClassifier, analyses: { classify, step_numbers: stepNumbersOfLook } },
};

/** What computes with an exported model. */
export function loadPredictor(exported) {
  const weights = new Weights(decodeFloats(exported.weights), exported.places);
  return new KINDS[exported.kind].Predictor(exported, weights);
}

export class Backend {
  /** @param {object[]} models as attnlab/explorer/export.py writes them */
  constructor(models) {
    this.models = new Map(models.map((exported) => [exported.name, exported]));
    this.predictors = new Map(); // a model is decoded when it is asked for the first time
  }

  /**
   * The answer to a question, such as "translate" with {model, text}.
   *
   * @throws an Error with a sentence for whatever does not fit the model or the text
   */
  answer(path, body) {
    if (path === "about") return { command: "" }; // no server that could be started again
    if (path === "models") return [...this.models.values()].map(({ facts }) => facts);
    const exported = this.models.get(body.model);
    if (exported === undefined) throw new Error(`model must be one of ${[...this.models.keys()].join(", ")}; got '${body.model}'`);
    if (path === "pairs") return exported.pairs;
    if (path === "formed") return exported.formed;
    const analysis = KINDS[exported.kind].analyses[path];
    if (analysis === undefined) throw new Error("this analysis does not fit the kind of the model");
    if (!this.predictors.has(body.model)) this.predictors.set(body.model, loadPredictor(exported));
    return analysis(this.predictors.get(body.model), body);
  }
}
