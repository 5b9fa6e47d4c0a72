// The states of before: two lists for undo and redo, and the browser's own for its back button.

import { isSaved } from "explorer/ask.js";
import { addressOf, differences } from "explorer/state.js";

const PAUSE = 1500; // milliseconds after which typing or dragging counts as a new change
const MOST = 200;
const PLACES = ["view", "model", "text"]; // what the back button goes through
const LOOKS = ["lang", "theme", "relative", "lines", "unfolded", "losses"]; // of the page, which undo leaves alone
const NOT_UNDONE = ["view", "step", "mode", "sheet", "formed", ...LOOKS];

const former = []; // what undo goes back to, the newest last
const later = []; // what redo goes to, the next one last
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

  if (!goesOn) keep(before, names);
  writeAddress(after, names.some((name) => PLACES.includes(name)) && !goesOn);
}

/** The same for a state that the browser's back or forward button has replaced: it has its address already. */
export function rememberVisit(before, after) {
  last = NO_SERIES;
  keep(before, differences(before, after));
}

/** Let undo go back to a state; a new change leaves what was undone. */
function keep(before, names) {
  if (names.every((name) => NOT_UNDONE.includes(name))) return;
  later.length = 0;
  former.push(before);
  if (former.length > MOST) former.shift();
}

export const canUndo = () => former.length > 0;
export const canRedo = () => later.length > 0;

/** The state before the last change that a person made, in the looks of today; null for none. */
export const undone = (state) => moved(state, former, later);

/** The state that was undone last, in the looks of today; null for none, as after a new change. */
export const redone = (state) => moved(state, later, former);

/** The newest state of a list, which leaves the state of today to the other list. */
function moved(state, from, to) {
  const wanted = from.pop();
  if (!wanted) return null;
  to.push(state);
  last = NO_SERIES;
  const restored = inLooksOf(state, wanted);
  writeAddress(restored, PLACES.some((name) => restored[name] !== state[name]));
  return restored;
}

/** Another state in the language, colours and drawing of today. */
export const inLooksOf = (today, other) => ({ ...other, ...Object.fromEntries(LOOKS.map((name) => [name, today[name]])) });

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
