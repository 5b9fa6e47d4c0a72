// Normalisers, as in attnlab/model/normalisers.py: from scores (S,) to attention weights (S,). A score is minus infinity
// where nothing may be seen, and the weight there is 0.

import { softmax } from "./vectors.js";

/** w_i = max(0, z_i - tau), with the one tau that makes the sum 1. */
function sparsemax(scores) {
  const most = Math.max(...scores);
  const z = Array.from(scores, (one) => one - most);
  // 1. The support is the longest run of sorted scores with 1 + k z_(k) > sum_{j<=k} z_(j).
  const ordered = [...z].sort((one, other) => other - one);
  let [size, ofSupport, total] = [0, 0, 0];
  ordered.forEach((one, i) => {
    total += one;
    if (1 + (i + 1) * one > total) [size, ofSupport] = [i + 1, total];
  });
  // 2. tau makes the weights of the support sum to 1.
  const tau = (ofSupport - 1) / size;
  return Float32Array.from(z, (one) => Math.max(one - tau, 0));
}

export const NORMALISERS = { Softmax: softmax, Sparsemax: sparsemax };
