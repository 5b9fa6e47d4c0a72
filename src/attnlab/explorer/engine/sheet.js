// A sheet: the symbols of one step in the order in which they are computed, and their formulas, as in
// attnlab/tasks/symbols/sheet.py, which describes the JSON.

import { OPERATIONS } from "./operations.js";
import { rounded } from "./source.js";

const WHOLE = 4096; // numbers of a symbol that are shown at once
const WINDOW = 32; // rows and columns of the window of a larger one

/** An axis of a symbol; labels of all its places, null where they are counted; shown, the places that are sent, null for all. */
export const axis = (letter, size, labels = null, shown = null) => ({ letter, size, labels, shown });

/** Collects the symbols of a step while they are computed. */
export class Sheet {
  symbols = new Map();

  groups = [];

  head = null; // counted from 0 on, that new symbols belong to

  #number = -1; // the first sentence tells what stands before the step

  /** The id of a symbol: its name, with the head that it belongs to, such as `e^(0)`. */
  named(name) {
    return this.head === null ? name : `${name}^(${this.head})`;
  }

  /** Begin a sentence of the step, or go on with the last one. */
  begin(about, { sameNumber = false } = {}) {
    if (!sameNumber) this.#number += 1;
    this.groups.push({ number: this.#number, about, head: this.head, symbols: [], formulas: [] });
  }

  /** A symbol that is not computed here: a state before the step, or an encoder's vector. */
  given(name, about, values, ...axes) {
    return this.#put({ name, about, values, axes, batched: true });
  }

  /** A weight of the model, or another number that has no batch. */
  weight(name, about, values, ...axes) {
    return this.#put({ name, about, values, axes, batched: false });
  }

  /** A symbol that an operation makes of others; `axes` of the result, where they do not follow from those of the others. */
  compute(name, about, operation, of, { axes = null, ...settings } = {}) {
    const values = OPERATIONS[operation](...of.map((each) => each.values), settings);
    // The row of a matrix that is looked up is another one for each sentence.
    const batched = operation === "lookup" || of.some((each) => each.batched);
    return this.#put({ name, about, values, axes: axes ?? axesOfResult(operation, of), batched, operation, of, settings });
  }

  /** A symbol whose values the model computed, as under a change of the weights. */
  opaque(name, about, values, axes, of, operation) {
    return this.#put({ name, about, values, axes, batched: true, operation, of, settings: {} });
  }

  /** Add a formula, with a symbol at each {} of the template; the first symbol is the one that it makes. */
  formula(template, ...symbols) {
    const [first, ...texts] = template.split("{}");
    const parts = [first, ...texts.flatMap((text, i) => [symbols[i], text])];
    this.groups.at(-1).formulas.push(parts.filter((part) => part !== ""));
  }

  #put({ name, operation = null, of = [], settings = {}, ...rest }) {
    const id = this.named(name);
    const symbol = { id, name: nameTokens(id), operation, of, settings, ...rest };
    this.symbols.set(id, symbol);
    this.groups.at(-1).symbols.push(symbol);
    return symbol;
  }

  /** The groups and symbols as JSON holds them; windows say where the window of a large symbol starts. */
  asJson(windows) {
    const formulaOf = new Map();
    let count = 0;
    const groups = this.groups.map(({ symbols, formulas, ...group }) => ({
      ...group,
      symbols: symbols.map(({ id }) => id),
      formulas: formulas.map((parts) => {
        const id = `f${count += 1}`;
        const made = parts.find((part) => typeof part !== "string");
        if (!formulaOf.has(made.id)) formulaOf.set(made.id, id);
        return { id, parts: parts.map((part) => (typeof part === "string" ? part : { symbol: part.id })) };
      }),
    }));
    const symbols = [...this.symbols.values()].map((symbol) => plainSymbol(symbol, formulaOf.get(symbol.id) ?? null, windows?.[symbol.id] ?? []));
    return { groups, symbols };
  }
}

/** The axes of what an operation makes, where they follow from those of what it reads. */
function axesOfResult(operation, of) {
  const axes = of.map((each) => each.axes);
  if (operation === "linear") return [...axes[1].slice(0, -1), axes[0][0]];
  if (operation === "dot") return axes[1].slice(0, -1);
  if (operation === "outer") return [...axes[0], ...axes[1]];
  if (operation === "weighted_sum") return axes[1].slice(1);
  if (operation === "lookup" || operation === "sum_of_rows") return axes[0].slice(1);
  if (operation === "total") return [];
  // Number by number: the result has the axes of the largest.
  return axes.reduce((most, each) => (each.length > most.length ? each : most));
}

/** `κ_t^(1)` -> ["κ", {sub: "t"}, {sup: "(1)"}]. */
function nameTokens(name) {
  const [, base, sub, sup] = /^([^_^]+)(?:_([^^]+))?(?:\^(.+))?$/u.exec(name);
  return [base, ...(sub === undefined ? [] : [{ sub }]), ...(sup === undefined ? [] : [{ sup }])];
}

/** The first letter of a symbol's name, with its prime: `s` of s_t−1. */
export const base = (symbol) => symbol.name[0];

function plainSymbol(symbol, formula, start) {
  const { id, name, about, batched, operation, of, settings } = symbol;
  const shape = symbol.axes.map(({ letter, size }) => [letter, size]);
  const places = shownPlaces(symbol.axes, start);
  const axes = symbol.axes.map(({ letter, size, labels }, i) => {
    const at = places[i];
    return { letter, size, labels: labels === null || at === null ? labels : at.map((place) => labels[place]), at };
  });
  return {
    id, name, about,
    shape: batched ? [["B", 1], ...shape] : shape,
    axes,
    values: plainNumbers(symbol.values, symbol.axes.map(({ size }, i) => places[i] ?? [...Array(size).keys()])),
    formula,
    made_from: operation === null ? null : { op: operation, of: of.map((each) => each.id), ...settings },
  };
}

/** The places of each axis that are shown; null for all of them. */
function shownPlaces(axes, start) {
  const places = axes.map(({ shown }) => shown);
  const count = axes.reduce((product, { size }, i) => product * (places[i]?.length ?? size), 1);
  if (count <= WHOLE) return places;
  return axes.map(({ size }, i) => {
    if (places[i] !== null || size <= WINDOW) return places[i];
    const first = Math.min(Math.max(start[i] ?? 0, 0), size - 1);
    return Array.from({ length: Math.min(WINDOW, size - first) }, (_, k) => first + k);
  });
}

/** Nested lists of numbers; null for minus infinity, which JSON lacks. */
function plainNumbers({ shape, data }, places) {
  const plain = (number) => (number === -Infinity ? null : rounded(number));
  if (shape.length === 0) return plain(data[0]);
  if (shape.length === 1) return places[0].map((i) => plain(data[i]));
  return places[0].map((i) => places[1].map((j) => plain(data[i * shape[1] + j])));
}
