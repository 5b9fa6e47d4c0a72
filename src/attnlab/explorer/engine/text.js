// Text to ids and back, and the cleaning of a text, as in attnlab/data/tokenizer.py, trainers.py and corpus.py.

import { BOS, EOS, PAD, UNK } from "./batch.js";

const MARK = "▁"; // stands before the first token of a word
const SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // Unicode's white space
const PYTHON_SPACE = `${SPACE}\\x1c-\\x1f`; // what Python's str.split takes for it
const SPACES = new RegExp(`[${PYTHON_SPACE}]+`, "u");
const BLANK = new RegExp(`^[${PYTHON_SPACE}]*$`, "u");
const BYTE_ORDER_MARKS = new RegExp(`^[${PYTHON_SPACE}\\ufeff]*\\ufeff`, "u");
// `\w` of the tokenizers library; the superscripts and fractions of Latin 1 are a habit of its Oniguruma.
const WORD = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\xb2\\xb3\\xb9\\xbc-\\xbe";
const WORD_OR_MARK = new RegExp(`${MARK}?[${WORD}]+|${MARK}?[^${WORD}${MARK}]|${MARK}`, "gu");

/** A text in its normal form, each run of white space one space where they collapse. */
export function tidy(text, { unicode, whitespace }) {
  const surrogate = [...text].findIndex((character) => !character.isWellFormed());
  if (surrogate >= 0) throw new Error(`each text must be Unicode text, but character ${surrogate + 1} of it is a lone surrogate`);
  const normal = unicode === "none" ? text : text.normalize(unicode.toUpperCase());
  if (whitespace === "keep") return normal;
  return normal.replace(BYTE_ORDER_MARKS, "").split(SPACES).filter(Boolean).join(" ");
}

/**
 * A trained tokenizer. Its config has:
 *   pieces: words split at white space, `words` and punctuation, `characters`, or `bpe`
 *   lowercase, normalization: what is done to every text first
 *   vocabulary: the tokens by their ids
 *   merges: of bpe, the pairs of pieces by their rank
 */
export class Tokenizer {
  constructor(config) {
    this.config = config;
    this.vocabulary = config.vocabulary;
    this.ids = new Map(config.vocabulary.map((token, id) => [token, id]));
    this.isMarked = config.pieces === "words" || config.pieces === "bpe";
    this.ranks = new Map((config.merges ?? []).map((pair, rank) => [pair.join("\n"), rank]));
  }

  get size() {
    return this.vocabulary.length;
  }

  /** The ids of a text, without `<bos>` and `<eos>`. Text that reads like a special token is unknown text. */
  encode(text) {
    const ids = this.#tokensOf(this.#normalized(text)).map((token) => this.ids.get(token) ?? UNK);
    return ids.map((id) => (id <= EOS ? UNK : id));
  }

  #normalized(text) {
    const { normalization, lowercase } = this.config;
    let normal = normalization === "none" ? text : text.normalize(normalization.toUpperCase());
    if (lowercase) normal = Array.from(normal, (character) => character.toLowerCase()).join("");
    if (!this.isMarked || normal === "") return normal;
    return MARK + normal.replaceAll(MARK, "_").replaceAll(" ", MARK);
  }

  #tokensOf(text) {
    if (this.config.pieces === "characters") return [...text];
    if (this.config.pieces === "whitespace") return text.split(new RegExp(`[${SPACE}]+`, "u")).filter(Boolean);
    const words = text.match(WORD_OR_MARK) ?? [];
    return this.config.pieces === "bpe" ? words.flatMap((word) => this.#piecesOf(word)) : words;
  }

  /** The pieces of a word: neighbours are merged in the order in which the merges were learnt. */
  #piecesOf(word) {
    const pieces = [...word];
    for (;;) {
      const ranks = pieces.slice(1).map((piece, i) => this.ranks.get(`${pieces[i]}\n${piece}`) ?? Infinity);
      const place = ranks.indexOf(Math.min(...ranks));
      if (place < 0 || ranks[place] === Infinity) return pieces;
      pieces.splice(place, 2, pieces[place] + pieces[place + 1]);
    }
  }

  /** The text; `<pad>`, `<bos>` and `<eos>` are left out. What is taken apart (NFD) is put together again. */
  decode(ids) {
    const text = this.#joined(ids);
    return ["nfd", "nfkd"].includes(this.config.normalization) ? text.normalize("NFC") : text;
  }

  #joined(ids) {
    const unknown = (this.isMarked ? MARK : "") + this.vocabulary[UNK]; // a word by itself
    const real = ids.filter((id) => id !== PAD && id !== BOS && id !== EOS);
    const tokens = real.map((id) => (id === UNK ? unknown : this.vocabulary[id]));
    if (this.config.pieces === "whitespace") return tokens.join(" ");
    const text = tokens.join("");
    return this.isMarked ? text.replaceAll(MARK, " ").replace(/^ /, "") : text;
  }

  /** A readable name for each id: `<eos>`, `␣` for white space, words without their mark. */
  tokens(ids) {
    return ids.map((id) => {
      const token = this.vocabulary[id];
      const name = this.isMarked && token.startsWith(MARK) ? token.slice(1) : token;
      return BLANK.test(name) ? "␣" : name;
    });
  }

  /** The id of a token in the form that `tokens` shows; ids are returned as they are. */
  idOf(token) {
    const id = typeof token === "string" ? this.#idOfName(token) : token;
    if (!(id >= 0 && id < this.size) || id === PAD || id === BOS) {
      const shown = typeof token === "string" ? `'${token}'` : token;
      throw new Error(`${shown} is no token that the model can write; it has ${this.size}, from ids 0 on`);
    }
    return id;
  }

  #idOfName(name) {
    const written = name === "␣" ? " " : name;
    return (this.isMarked ? this.ids.get(MARK + written) : undefined) ?? this.ids.get(written);
  }
}
