// Encode, unroll over the target, project, as in attnlab/model/seq2seq.py; one sentence at a time.
//
// Axes: S source length, T target length, V vocabulary.

import { remember } from "./attention.js";
import { bridgeOf } from "./bridges.js";
import { decoderOf } from "./decoders.js";
import { RecurrentEncoder } from "./encoder.js";
import { FEEDINGS } from "./input_feeding.js";
import { NO_CHANGE } from "./intervention.js";
import { needsAttention, patched } from "./patch.js";
import { readoutOf } from "./readouts.js";
import { mean } from "./vectors.js";

export class Seq2Seq {
  /**
   * @param {object} config the parts of the model and their settings, as attnlab/explorer/exported_model.py writes them
   * @param {Weights} weights
   */
  constructor(config, weights) {
    Object.assign(this, { config, weights, padding: config.padding });
    this.encoder = new RecurrentEncoder(config.encoder, config.padding, weights.of("encoder"));
    this.bridge = bridgeOf(config.bridge, weights.of("bridge"));
    this.decoder = decoderOf(config.decoder, weights.of("decoder"));
    this.readout = readoutOf(config.readout, weights.of("decoder.body.readout"));
    this.feeding = config.input_feeding === null ? null : FEEDINGS[config.input_feeding];
    this.outputLayer = weights.linear("output");
  }

  /** The source (S,) and its mask (S,) -> the memory that the decoder reads, and its first state; recurrence as the encoder takes it. */
  encode(source, mask, intervention, recurrence) {
    const encoded = this.encoder.encode(source, mask, recurrence);
    let memory = this.#remember(encoded, mask, intervention);
    let recurrent = this.bridge.firstState(encoded, mask);
    const { patch } = intervention;
    if (patch !== null) {
      const other = this.encoder.encode(patch.ids, patch.mask);
      if (needsAttention(patch)) memory = patched(memory, patch, this.#remember(other, patch.mask, NO_CHANGE));
      if (patch.state) recurrent = this.bridge.firstState(other, patch.mask);
    }
    return { memory, state: this.decoder.firstState(recurrent, encoded, memory) };
  }

  #remember(encoded, mask, intervention) {
    return remember(encoded, mask, this.padding.attention_masked, this.decoder.attention, intervention);
  }

  /**
   * One step after a token.
   *
   * @returns {{logits, state, weights, query, heads}} logits (V,) of the next token, the state after, the attention weights
   *   (S,), the mean over the heads, null for a model without attention, its query, and the numbers of each head
   */
  step(token, state, memory) {
    const output = this.decoder.step(this.decoder.embedding.row(token), state, memory);
    const readout = this.readout.read(output.hidden, output.context, output.token);
    const after = { ...output.state };
    if (this.feeding !== null) after.fed = this.feeding(readout, this.outputLayer, this.decoder.embedding);
    const weights = output.attention === null ? null : mean(output.attention.weights);
    const { query = null, heads = [] } = output.attention ?? {};
    return { logits: this.outputLayer(readout), state: after, weights, query, heads };
  }
}
