// Input feeding, as in attnlab/model/input_feeding.py: what a step receives from the step before, beside its token.
//
// Each takes the readout of a step (R,), the output layer and the target embedding.

import { softmax } from "./vectors.js";

export const FEEDINGS = {
  /** x_t = [e(y_{t-1}); attentional_hidden_{t-1}]. */
  AttentionalHiddenFeeding: (readout) => readout,
  /** x_t = [e(y_{t-1}); sum_y p_{t-1}(y) e(y)]. */
  ExpectedEmbeddingFeeding: (readout, output, embedding) => embedding.sumOfRows(softmax(output(readout))),
  /** x_t = [e(y_{t-1}); p_{t-1}]. */
  SoftmaxOutputFeeding: (readout, output) => softmax(output(readout)),
};
