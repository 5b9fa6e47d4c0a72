// How a number of a step was made: the numbers that it was made of, and the arithmetic written out.
// The operations are those of attnlab/tasks/symbols/operations.py; tasks/symbols/sheet.py describes a symbol.

const FOLDED = 8; // terms of a sum that are written out
export const MINUS = "−";

/** A number as it is written in a formula; null is minus infinity. */
export function written(number, digits = 2) {
  if (number === undefined) return "?";
  if (number === null) return `${MINUS}∞`;
  const text = Math.abs(number) < 0.5 * 10 ** -digits ? (0).toFixed(digits) : number.toFixed(digits);
  return text.replace("-", MINUS);
}

/** The symbols of a step by their ids. */
export class Sheet {
  constructor(symbols) {
    this.symbols = new Map(symbols.map((symbol) => [symbol.id, symbol]));
  }

  get(id) {
    return this.symbols.get(id);
  }

  /** The number at a place, counted on the whole axes; undefined where it was not sent. */
  value(id, place) {
    const symbol = this.get(id);
    let found = symbol.values;
    for (const [axis, at] of place.entries()) {
      const shown = symbol.axes[axis].at;
      found = found?.[shown ? shown.indexOf(at) : at];
    }
    return found;
  }

  dimensions = (id) => this.get(id).axes.length;
  size = (id, axis) => this.get(id).axes.at(axis).size;
}

const range = (length) => [...Array(length).keys()];
const times = (one, other) => `${one} · ${bracketed(other)}`;
const bracketed = (text) => (text.startsWith(MINUS) ? `(${text})` : text);

/** Terms joined by +, those in the middle folded. */
function sum(terms) {
  const shown = terms.length > FOLDED ? [...terms.slice(0, 3), "…", terms.at(-1)] : terms;
  return shown.length ? shown.map((term, i) => (i ? bracketed(term) : term)).join(" + ") : "0";
}

/** The place in an operand that lines up with a place of the result: its last axes. */
const aligned = (sheet, id, place) => place.slice(place.length - sheet.dimensions(id));

/** A product summed over pairs of places: [[id, place], [id, place]] a term. */
function sumOfProducts(sheet, pairs, more = []) {
  const number = ([id, place]) => written(sheet.value(id, place));
  const products = pairs.map(([one, other]) => times(number(one), number(other)));
  return { cells: [...pairs.flat(), ...more], text: sum([...products, ...more.map(number)]) };
}

/** Single numbers, and the arithmetic that a function writes of them. */
function few(sheet, cells, write) {
  return { cells, text: write(...cells.map(([id, place]) => written(sheet.value(id, place)))) };
}

/** As `few`, of the numbers that line up with a place. */
const inPlace = (write) => (sheet, { of }, place) => few(sheet, of.map((id) => [id, aligned(sheet, id, place)]), write);

const everyPlace = (sheet, id) => sheet.get(id).axes.reduce(
  (places, axis) => places.flatMap((place) => (axis.at ?? range(axis.size)).map((at) => [...place, at])), [[]]);
const wholeOf = (sheet, id) => everyPlace(sheet, id).map((place) => [id, place]);

/** A softmax over those numbers that keep a weight. */
function softmaxOfSome(sheet, { of: [x] }, place, result) {
  const cells = wholeOf(sheet, x);
  if (sheet.value(result, place) === 0) return { cells, text: "0" };
  const kept = cells.filter(([, at]) => sheet.value(result, at) > 0);
  const terms = kept.map(([, at]) => `exp(${written(sheet.value(x, at))})`);
  return { cells, text: `exp(${written(sheet.value(x, place))}) / (${sum(terms)})` };
}

const FUNCTIONS = {
  linear(sheet, { of: [W, x, b] }, place) {
    const row = place.at(-1);
    const before = place.slice(0, -1);
    const pairs = range(sheet.size(W, 1)).map((k) => [[W, [row, k]], [x, [...before, k]]]);
    return sumOfProducts(sheet, pairs, b ? [[b, [row]]] : []);
  },
  dot: (sheet, { of: [query, keys] }, place) =>
    sumOfProducts(sheet, range(sheet.size(query, 0)).map((k) => [[query, [k]], [keys, [...place, k]]])),
  weighted_sum: (sheet, { of: [weights, values] }, place) =>
    sumOfProducts(sheet, (sheet.get(weights).axes[0].at ?? range(sheet.size(weights, 0))).map((s) => [[weights, [s]], [values, [s, ...place]]])),
  outer: (sheet, { of: [one, other] }, [i, j]) => few(sheet, [[one, [i]], [other, [j]]], times),
  add: inPlace((...terms) => sum(terms)),
  multiply: inPlace(times),
  divide: inPlace((one, other) => `${one} / ${bracketed(other)}`),
  total(sheet, { of: [x] }) {
    const cells = wholeOf(sheet, x);
    return few(sheet, cells, (...terms) => sum(terms));
  },
  sum_of_rows: (sheet, { of: [matrix] }, [column]) =>
    few(sheet, range(sheet.size(matrix, 0)).map((row) => [matrix, [row, column]]), (...terms) => sum(terms)),
  copied(sheet, { of, tokens }, [token]) {
    const places = tokens.flatMap((each, i) => (each === token ? [i] : []));
    if (places.length === 0) return { cells: [], text: "0" };
    const cells = of.flatMap((weights) => places.map((i) => [weights, [i]]));
    return few(sheet, cells, (...terms) => (of.length > 1 ? `(${sum(terms)}) / ${of.length}` : sum(terms)));
  },
  unit(sheet, { of: [x] }, place) {
    const row = range(sheet.size(x, -1)).map((k) => [x, [...place.slice(0, -1), k]]);
    const own = written(sheet.value(x, place));
    return few(sheet, row, (...terms) => `${own} / √(${sum(terms.map((term) => `${bracketed(term)}²`))})`);
  },
  tanh: inPlace((a) => `tanh(${a})`),
  sigmoid: inPlace((a) => `1 / (1 + exp(−(${a})))`),
  relu: inPlace((a) => `max(0, ${a})`),
  seen_alone: inPlace((a) => (a === `${MINUS}∞` ? "0" : a)),
  softmax(sheet, { of: [x] }, place) {
    const own = written(sheet.value(x, place));
    const isWhole = sheet.get(x).axes[0].at === null;
    return few(sheet, wholeOf(sheet, x), (...scores) =>
      `exp(${own}) / (${sum(scores.map((score) => `exp(${score})`))}${isWhole ? "" : " + …"})`);
  },
  sparsemax(sheet, { of: [x] }, place, result) {
    // tau is what any positive weight was lowered by.
    const seen = range(sheet.size(x, 0)).find((i) => sheet.value(result, [i]) > 0);
    const tau = written(sheet.value(x, [seen]) - sheet.value(result, [seen]));
    return { cells: wholeOf(sheet, x), text: `max(0, ${written(sheet.value(x, place))} − ${bracketed(tau)})` };
  },
  entmax(sheet, { of: [x], alpha }, place, result) {
    const seen = range(sheet.size(x, 0)).find((i) => sheet.value(result, [i]) > 0);
    const tau = (alpha - 1) * sheet.value(x, [seen]) - sheet.value(result, [seen]) ** (alpha - 1);
    const [share, power] = [written(alpha - 1), written(1 / (alpha - 1))];
    const text = `max(0, ${times(share, written(sheet.value(x, place)))} − ${bracketed(written(tau))})^${power}`;
    return { cells: wholeOf(sheet, x), text };
  },
  sigmoid_weights(sheet, { of: [x, offset] }, place) {
    const n = wholeOf(sheet, x).filter(([, at]) => Number.isFinite(sheet.value(x, at))).length;
    return few(sheet, [[x, place], [offset, []]], (e, b) => `1 / (1 + ${n} · exp(−(${sum([e, b])})))`);
  },
  softmax_with_sink(sheet, { of: [x, sink] }, place) {
    const own = written(sheet.value(x, place));
    return few(sheet, [[sink, []], ...wholeOf(sheet, x)], (b, ...scores) =>
      `exp(${own}) / (${sum([b, ...scores].map((score) => `exp(${score})`))})`);
  },
  tempered_softmax(sheet, { of: [x, logarithm] }, place) {
    const own = written(sheet.value(x, place));
    const temperature = written(Math.exp(sheet.value(logarithm, [])));
    const cells = wholeOf(sheet, x);
    const terms = cells.map(([, at]) => `exp(${written(sheet.value(x, at))} / ${temperature})`);
    return { cells: [[logarithm, []], ...cells], text: `exp(${own} / ${temperature}) / (${sum(terms)})` };
  },
  top_k: softmaxOfSome,
  around_best: softmaxOfSome,
  greatest(sheet, { of: [x] }, place, result) {
    const cells = wholeOf(sheet, x);
    const most = written(Math.max(...cells.map(([, at]) => sheet.value(x, at))));
    const own = written(sheet.value(x, place));
    return { cells, text: sheet.value(result, place) === 1 ? `${own} = max ⇒ 1` : `${own} < ${most} ⇒ 0` };
  },
  around: (sheet, { of: [x], width }, [i, k]) => {
    const place = i + k - Math.floor(width / 2);
    const isInside = place >= 0 && place < sheet.size(x, 0);
    return isInside ? few(sheet, [[x, [place]]], (a) => a) : { cells: [], text: "0" };
  },
  one_before: (sheet, { of: [x] }, [i]) => (i === 0 ? { cells: [], text: "0" } : few(sheet, [[x, [i - 1]]], (a) => a)),
  first_chosen(sheet, { of: [energy, before] }, place, result) {
    const own = written(sheet.value(energy, place));
    const cells = [...wholeOf(sheet, energy), ...wholeOf(sheet, before)];
    return { cells, text: sheet.value(result, place) === 1 ? `${own} ≥ 0 ⇒ 1` : "0" };
  },
  mean_choice(sheet, { of: [energy, before] }, [i]) {
    const p = (at) => 1 / (1 + Math.exp(-sheet.value(energy, [at])));
    const terms = range(i + 1).map((k) => times(written(sheet.value(before, [k])), ...range(i - k).map((l) => `(1 − ${written(p(k + l))})`)));
    const seen = range(i + 1).flatMap((k) => [[energy, [k]], [before, [k]]]);
    return { cells: seen, text: `${written(p(i))} · (${sum(terms)})` };
  },
  chunk_softmax(sheet, { of: [stops, energies], size }, [i]) {
    const ends = range(size).map((k) => i + k).filter((end) => end < sheet.size(stops, 0));
    const chunkOf = (end) => range(size).map((k) => end - k).filter((place) => place >= 0).reverse();
    const power = (place) => `exp(${written(sheet.value(energies, [place]))})`;
    const terms = ends.filter((end) => sheet.value(stops, [end]) !== 0)
      .map((end) => times(written(sheet.value(stops, [end])), `${power(i)} / (${sum(chunkOf(end).map(power))})`));
    const compared = new Set(ends.flatMap(chunkOf));
    const cells = [...ends.map((end) => [stops, [end]]), ...[...compared].map((place) => [energies, [place]])];
    return { cells, text: terms.length === 0 ? "0" : sum(terms) };
  },
  mask: (sheet, { of: [scores, visible] }, place) =>
    few(sheet, [[scores, place], [visible, place]], (score, seen) => (seen.startsWith("0") ? `m = 0 ⇒ ${MINUS}∞` : `m = 1 ⇒ ${score}`)),
  lookup: (sheet, { of: [E], index }, place) => few(sheet, [[E, [index, ...place]]], (a) => a),
  columns: (sheet, { of: [W], start }, [i, j]) => few(sheet, [[W, [i, start + j]]], (a) => a),
  gather: (sheet, { of: [x], index }, [i]) => few(sheet, [[x, [index[i]]]], (a) => a),
  concat(sheet, { of }, [place]) {
    let at = place;
    for (const id of of) {
      if (at < sheet.size(id, 0)) return few(sheet, [[id, [at]]], (a) => a);
      at -= sheet.size(id, 0);
    }
    return { cells: [], text: "" };
  },
  gate: (sheet, { of: [one, other], start, function: name }, [i]) =>
    few(sheet, [[one, [start + i]], [other, [start + i]]], (a, b) => `${name}(${sum([a, b])})`),
  candidate: (sheet, { of: [one, reset, other], start }, [i]) =>
    few(sheet, [[one, [start + i]], [reset, [i]], [other, [start + i]]], (a, r, b) => `tanh(${a} + ${times(r, b)})`),
  blend: inPlace((n, z, s) => `(1 − ${z}) · ${bracketed(n)} + ${times(z, s)}`),
  two_products: inPlace((f, C, i, g) => `${times(f, C)} + ${times(i, g)}`),
  gated_tanh: inPlace((o, c) => `${o} · tanh(${c})`),
  maxout: (sheet, { of: [x] }, [i]) => few(sheet, [[x, [2 * i]], [x, [2 * i + 1]]], (a, b) => `max(${a}, ${b})`),
  window: (sheet, { of: [places, centre], width }, place) =>
    few(sheet, [[places, place], [centre, []]], (i, p) => `|${i} − ${p}| ≤ ${width}`),
  gaussian: (sheet, { of: [places, centre], sigma }, place) =>
    few(sheet, [[places, place], [centre, []]], (i, p) => `exp(−(${i} − ${p})² / (2 · ${sigma}²))`),
  centre: (sheet, { of: [share], length }) => few(sheet, [[share, []]], (a) => `min(${length} · ${a}, ${length - 1})`),
};

/**
 * What a number was made of.
 *
 * @param {Sheet} sheet
 * @param {string} id of the symbol
 * @param {number[]} place on its axes
 * @returns {{cells: [string, number[]][], text: string|null}} the numbers; text is null where the arithmetic is unknown
 */
export function madeOf(sheet, id, place) {
  const { made_from: made } = sheet.get(id);
  if (made === null) return { cells: [], text: null };
  const explain = FUNCTIONS[made.op];
  if (explain) return explain(sheet, made, place, id);
  return { cells: made.of.flatMap((each) => wholeOf(sheet, each)), text: null };
}

/**
 * A symbol's tensor product in a batch, as one types it in PyTorch: {function, of: [[id, shape, isTransposed], ...], result: shape}.
 * A shape is a list of [letter, size]. null where its operation is no product.
 */
export function batchProduct(sheet, symbol) {
  const made = symbol.made_from;
  if (made?.op !== "dot" && made?.op !== "weighted_sum" && made?.op !== "linear") return null;
  const [left, right] = made.of.map((id) => sheet.get(id));
  const B = ["B", 1];
  const one = ["", 1];
  const axesOf = ({ axes }) => axes.map(({ letter, size }) => [letter, size]);
  const hasBatch = ({ shape }) => shape[0]?.[0] === "B";
  if (made.op === "linear") {
    const [rows, columns] = axesOf(left);
    return { function: "matmul", of: [[right.id, right.shape, false], [left.id, [columns, rows], true]], result: symbol.shape };
  }
  // A bmm multiplies two matrices in each sentence of the batch.
  if (!hasBatch(left) || !hasBatch(right) || right.axes.length < 2) {
    return { function: "matmul", of: [[right.id, right.shape, false], [left.id, left.shape, false]], result: symbol.shape };
  }
  const [first, second] = axesOf(right);
  const isDot = made.op === "dot";
  return {
    function: "bmm",
    of: [[left.id, [B, one, ...axesOf(left)], false], [right.id, isDot ? [B, second, first] : [B, first, second], isDot]],
    result: [B, one, isDot ? first : second],
  };
}
