// The states of before: one list for undo, and the browser's own for its back button.

import { isSaved } from "explorer/ask.js";
import { addressOf, differences } from "explorer/state.js";

const PAUSE = 1500; // milliseconds after which typing or dragging counts as a new change
const MOST = 200;
const PLACES = ["view", "model", "text"]; // what the back button goes through
const LOOKS = ["lang", "theme", "relative", "lines", "unfolded", "losses"]; // of the page, which undo leaves alone
const NOT_UNDONE = ["view", "step", "mode", "sheet", "formed", ...LOOKS];

const former = []; // what undo goes back to, the newest last
const NO_SERIES = { name: null, time: -Infinity };
let last = NO_SERIES;

/**
 * Remember what a change has replaced, and give the new state its address.
 *
 * @param {string|null} series what a person is typing or dragging: a series of such changes is one
 */
export function remember(before, after, series) {
  const names = differences(before, after);
  if (names.length === 0) return;
  const goesOn = series !== null && series === last.name && performance.now() - last.time < PAUSE;
  last = { name: series, time: performance.now() };

  const isChange = names.some((name) => !NOT_UNDONE.includes(name));
  if (isChange && !goesOn) former.push(before);
  if (former.length > MOST) former.shift();

  writeAddress(after, names.some((name) => PLACES.includes(name)) && !goesOn);
}

export const canUndo = () => former.length > 0;

/** The state before the last change that a person made, in the looks of today; null for none. */
export function undone(state) {
  const earlier = former.pop();
  if (!earlier) return null;
  last = NO_SERIES;
  const restored = inLooksOf(state, earlier);
  writeAddress(restored, PLACES.some((name) => restored[name] !== state[name]));
  return restored;
}

/** An earlier state in the language, colours and drawing of today. */
export const inLooksOf = (today, earlier) => ({ ...earlier, ...Object.fromEntries(LOOKS.map((name) => [name, today[name]])) });

/** Give the page the address of a state, as a new place for the back button or in place of the newest one. */
export function writeAddress(state, isNewPlace) {
  if (isSaved) return;
  const write = isNewPlace ? "pushState" : "replaceState";
  try {
    history[write]({ isOurs: true }, "", addressOf(state));
  } catch {
    // A frame inside of another page has no address of its own.
  }
}
