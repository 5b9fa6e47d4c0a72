// What is known of a translation: links of the corpus, and words that differ from the reference.

import { ask } from "explorer/ask.js";

/** The marks {sure, possible, wrong} of a translation beside a reference {ids}; the pair {sure, possible} may be missing. */
export const marksOf = (model, { ids }, { ids: reference }, pair) =>
  ask(["marks", { model, ids, reference, sure: pair?.sure ?? [], possible: pair?.possible ?? [] }]);

/** The same for the reference of a test pair with this source; null where there is none. */
export async function marksOfPair(model, text, answer) {
  const pair = (await ask(["pairs", { model }])).find((each) => each.source === text);
  if (!pair) return null;
  const reference = await ask(["score", { model, text, target: pair.target }]);
  return marksOf(model, answer, reference, pair);
}
