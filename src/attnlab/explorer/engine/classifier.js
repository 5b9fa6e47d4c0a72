// The attention classifier, as in attnlab/model/classifier.py: encode, attend once, decide.

import { attentionOf, remember } from "./attention.js";
import { RecurrentEncoder } from "./encoder.js";
import { logSoftmax, mean, relu } from "./vectors.js";

/** log sigmoid(x). */
const logSigmoid = (x) => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x)));

export class Classifier {
  constructor(config, weights) {
    Object.assign(this, { config, weights, padding: config.padding });
    this.encoder = new RecurrentEncoder(config.encoder, config.padding, weights.of("encoder"));
    this.attention = attentionOf(config.attention, weights.of("attention"));
    this.dense = weights.linear("dense");
    this.outputLayer = weights.linear("output");
    this.learnedQuery = config.query === "learned" ? weights.vector("learned_query") : null;
  }

  /**
   * The source (S,) and its mask (S,) -> log-probabilities of the classes, weights (S,), the mean over the heads, and what
   * the attention read and computed.
   */
  classify(source, mask, intervention, recurrence) {
    // 1. Read the sentence.
    const encoded = this.encoder.encode(source, mask, recurrence);
    const memory = remember(encoded, mask, this.padding.attention_masked, this.attention, intervention);
    // 2. Look back at it once.
    const query = this.learnedQuery ?? memory.summary;
    const { context, weights, heads } = this.attention.attend(query, memory, 0, null);
    // 3. Decide: d = relu(W_d c + b_d), z = W_o d + b_o.
    const logits = this.outputLayer(relu(this.dense(context)));
    return { logProbabilities: logProbabilities(logits), weights: mean(weights), memory, heads, query };
  }
}

/** Log-probabilities of classes, from one logit of two classes, or the logits of more. */
function logProbabilities(logits) {
  if (logits.length > 1) return logSoftmax(logits);
  return Float32Array.of(logSigmoid(-logits[0]), logSigmoid(logits[0]));
}
