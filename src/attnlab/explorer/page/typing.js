// What a person types, without the halves of a composed character: Hangul, kana and kanji are written by an input
// method, whose unfinished syllables no model should read.

document.addEventListener("compositionend", ({ target }) => target.dispatchEvent(new Event("input", { bubbles: true })));

/** A handler of `oninput` that takes the text of a box, but not while a composition runs. */
export const typed = (take) => (event) => {
  if (!event.isComposing) take(event.currentTarget.value);
};

const TEXT_BOXES = "textarea, input[type=text], input[type=number]";

/** Whether a key press belongs to a box of text. */
export const isInTextBox = ({ target }) => target instanceof Element && target.matches(TEXT_BOXES);

const HANGUL_KEYS = { "ㅋ": "z", "ㅛ": "y" }; // of a Korean keyboard, in place of these letters

/** The Latin letter of a key press, also while a keyboard writes Hangul. */
export const letterOf = ({ key }) => HANGUL_KEYS[key] ?? key.toLowerCase();
