// A text as a model reads it, after an edit of its tokens, as in attnlab/tasks/edited_source.py.

import { checkSource } from "./intervention.js";
import { EOS, PAD } from "./batch.js";
import { tidy } from "./text.js";

const NO_EDIT = { swap: [], drop: [], before: 0, behind: 0 };

/** Swap tokens, pair after pair, and leave some out; positions count as before the drops. */
function edited(ids, { swap, drop }) {
  const swapped = [...ids];
  for (const [one, other] of swap) [swapped[one], swapped[other]] = [swapped[other], swapped[one]];
  return swapped.filter((_, position) => !drop.includes(position));
}

/**
 * The text as the model reads it, cleaned as its training data were.
 *
 * @returns {{ids, mask, tokens}} ids (S,) with `<eos>` and pads; mask (S,), true at real tokens; tokens (S,) as text
 * @throws an Error with a sentence for an intervention or an edit that does not fit the text
 */
export function readSource({ sourceTokenizer, cleaning }, text, edit, intervention) {
  const change = { ...NO_EDIT, ...edit };
  const ids = sourceTokenizer.encode(tidy(text, cleaning));
  const places = [...change.drop, ...change.swap.flat()];
  if (places.some((place) => place < 0 || place >= ids.length)) {
    throw new Error(`edit: swap and drop must name positions below ${ids.length}`);
  }
  const real = edited(ids, change);
  checkSource(intervention, real.length + 1);
  const pads = (count) => Array(count).fill(PAD);
  const padded = [...pads(change.before), ...real, EOS, ...pads(change.behind)];
  return { ids: padded, mask: padded.map((id) => id !== PAD), tokens: sourceTokenizer.tokens(padded) };
}

/** Numbers with as many decimals as a page needs, in lists as deep as they were. */
export function rounded(numbers) {
  if (typeof numbers === "number") return Math.round(numbers * 1e6) / 1e6;
  return Array.from(numbers, rounded);
}
