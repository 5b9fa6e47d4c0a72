// Tokens and weights as a heat map shows them, as in attnlab/plots/labels.py and heat_map.py.

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const JOINERS = ["\u200c", "\u200d"]; // emoji and Indic scripts need them
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u;

/** A token with its invisible control and format characters as code points. */
export function label(token) {
  const shown = [...token.normalize("NFC")].map((character) => {
    if (character === " ") return "␣";
    if (!INVISIBLE.test(character) || JOINERS.includes(character)) return character;
    return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  });
  return shown.join("") || "∅";
}

/** Columns of a label on a terminal, where Hangul, kana and kanji take two. */
export const terminalColumns = (text) => [...text].reduce((sum, character) => sum + (WIDE.test(character) ? 2 : 1), 0);

/** A weight with two digits: ".83", "−.83", "1" for 1.00, "" for one that rounds to 0. */
export function weightText(weight) {
  if (weight < 0) return weightText(-weight).replace(/^./, "−$&");
  if (weight < 0.005) return "";
  if (weight < 0.995) return weight.toFixed(2).replace(/^0/, "");
  return weight.toFixed(1).replace(/\.0$/, "");
}
