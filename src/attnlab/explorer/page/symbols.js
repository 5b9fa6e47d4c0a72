// The symbols of a step: chips in formulas, matrices with their numbers, and what lights up where one points.

import { batchProduct, madeOf, MINUS, Sheet, written } from "explorer/arithmetic.js";
import { level } from "explorer/colours.js";
import { h } from "explorer/dom.js";
import { label } from "explorer/labels.js";
import { say } from "explorer/words.js";

const SMALL = { columns: 8, tokens: 16, rows: 16 }; // a matrix that is open from the start
const WIDE = 6; // columns that a narrow screen does not have room for
const DISTRIBUTIONS = new Set(["weights", "weights_before_change", "weights_before", "distribution", "written", "copied", "mixed", "mask", "fed_softmax",
  "alignment", "class_distribution", "class_probability"]);

const COUNTED = new Set(["mask", "window", "mask_and_window", "positions"]); // whole numbers

let sheet = new Sheet([]); // of the step that is drawn
let isFirst = false; // whether that is the first one
let numbers = new Map(); // id of a symbol -> its number, of which the ids of its elements are made

/** Draw from the symbols of a step from now on. */
export function useSheet(symbols, step) {
  sheet = new Sheet(symbols);
  isFirst = step === 0;
  numbers = new Map(symbols.map(({ id }, i) => [id, i]));
  return sheet;
}

/** The name of a symbol, with what stands below and above the line. */
export const mathName = ({ name }) => name.map((part) => {
  if (typeof part === "string") return part;
  return part.sub ? h("sub", {}, part.sub) : h("sup", {}, part.sup);
});

/** A sentence with "_t" and "_{t−1}" below the line. */
export const withSubscripts = (text) => text.split(/_\{([^}]*)\}|_(\S)/).map((part, i) => (i % 3 === 0 ? part : part && h("sub", {}, part)));

const plainName = ({ name }) => name.map((part) => (typeof part === "string" ? part : part.sub ?? part.sup)).join(" ");
/** What a symbol is, without marks for what stands below the line. */
const plainAbout = (symbol) => about(symbol).replaceAll("_", "");
function about(symbol) {
  const words = say(isFirst && symbol.about === "state_before" ? "sym.first_state" : `sym.${symbol.about}`);
  return symbol.part ? `${words} (${symbol.part})` : words;
}
const figureId = (id) => `symbol-${numbers.get(id)}`;
const cellId = (id, place) => `number-${[numbers.get(id), ...place].join("-")}`;

/** Whether a symbol's matrix is shown: as a person chose, else if it is small. */
export function isOpen(symbol, opened) {
  if (symbol.id in opened) return opened[symbol.id];
  const lengths = symbol.axes.map(({ size, at }) => at?.length ?? size);
  const columns = lengths.at(-1) ?? 1;
  const rows = lengths.length > 1 ? lengths[0] : 1;
  const most = symbol.axes.at(-1)?.letter === "S" ? SMALL.tokens : SMALL.columns;
  return columns <= most && rows <= SMALL.rows;
}

/** A formula, its symbols as buttons that open and close their matrices. */
export function formula({ id, parts }, opened, toggle) {
  return h("p", { class: "formula-line", "data-key": id }, parts.map((part) => {
    if (typeof part === "string") return part;
    const symbol = sheet.get(part.symbol);
    return h("button", { type: "button", class: "chip", "data-symbol": symbol.id, title: plainAbout(symbol), "aria-label": `${plainName(symbol)}: ${plainAbout(symbol)}`,
      "aria-expanded": String(isOpen(symbol, opened)), "aria-controls": figureId(symbol.id), onclick: () => toggle(symbol) }, mathName(symbol));
  }));
}

/** The matrix of a symbol with its shape; folded, a button that shows it. */
export function matrix(symbol, opened, toggle, move) {
  const open = isOpen(symbol, opened);
  return h("figure", { class: `symbol${open ? "" : " folded"}`, id: figureId(symbol.id), "data-key": symbol.id },
    h("figcaption", {},
      h("button", { type: "button", class: "chip", "data-symbol": symbol.id, "aria-expanded": String(open), onclick: () => toggle(symbol),
        "aria-label": `${plainName(symbol)}: ${say(open ? "sheet.fold" : "sheet.show")}` }, mathName(symbol), open ? null : h("small", {}, say("sheet.show"))),
      " ", h("span", { class: "quiet" }, withSubscripts(about(symbol))), " ", h("span", { class: "shape" }, shapeText(symbol.shape))),
    open && [product(symbol), grid(symbol), windowOf(symbol, move)]);
}

/** "(B, S, D) = (1, 5, 4)"; of a single number nothing. */
function shapeText(shape) {
  if (shape.length === 0) return "";
  return `(${shape.map(([letter]) => letter).join(", ")}) = (${shape.map(([, size]) => size).join(", ")})`;
}

/** The product of tensors that makes a symbol in a batch. */
function product(symbol) {
  const found = batchProduct(sheet, symbol);
  if (found === null) return null;
  const letters = (shape) => `(${shape.map(([letter, size]) => letter || size).join(", ")})`;
  const sizes = (shape) => `(${shape.map(([, size]) => size).join(", ")})`;
  const operand = ([id, shape, isTransposed]) => [mathName(sheet.get(id)), isTransposed ? "ᵀ" : "", ` ${letters(shape)}`];
  const [one, other] = found.of;
  return h("p", { class: "product" },
    h("span", {}, mathName(symbol), ` ${letters(found.result)} = ${found.function}(`, operand(one), ", ", operand(other), ")"), " ",
    h("span", { class: "quiet" }, `${sizes(found.result)} = ${found.function}(${sizes(one[1])}, ${sizes(other[1])})`));
}

/** The numbers as a table, of which one reaches each by pointing or by the arrow keys. */
function grid(symbol) {
  const axes = symbol.axes;
  const rowAxis = axes.length > 1 ? axes[0] : null;
  const columnAxis = axes.at(-1) ?? null;
  const most = largest(symbol);
  const rows = rowAxis === null ? [null] : placesOf(rowAxis);
  const columns = columnAxis === null ? [null] : placesOf(columnAxis);
  const digits = COUNTED.has(symbol.about) ? 0 : 2;
  let isFirstCell = true;

  const cell = (row, column) => {
    const place = [row, column].filter((each) => each !== null);
    const value = sheet.value(symbol.id, place);
    const share = value === null ? 0 : Math.abs(value) / most;
    const properties = { id: cellId(symbol.id, place), "data-cell": symbol.id, "data-place": place.join(), tabindex: isFirstCell ? 0 : -1,
      class: `heat-${level(share)}` };
    isFirstCell = false;
    return h("td", properties, written(value, digits));
  };
  return h("div", {},
    columns.length > WIDE && h("p", { class: "narrow quiet" }, say("sheet.scroll", columns.length)),
    h("div", { class: "scroll" }, h("table", { class: "grid", role: "grid", "aria-label": `${plainName(symbol)}: ${plainAbout(symbol)}` },
    columnAxis && h("thead", {}, h("tr", {}, rowAxis && h("td", {}), columns.map((at, i) => h("th", { scope: "col" }, named(columnAxis, at, i))))),
    h("tbody", {}, rows.map((row, i) => h("tr", {}, rowAxis && h("th", { scope: "row" }, named(rowAxis, row, i)),
      columns.map((column) => cell(row, column))))))));
}

const placesOf = ({ size, at }) => at ?? [...Array(size).keys()];
const named = ({ labels }, at, i) => (labels ? h("bdi", {}, label(labels[i])) : String(at + 1));

/** The number at which a colour is full: 1 for shares, else the largest of the symbol. */
function largest(symbol) {
  if (DISTRIBUTIONS.has(symbol.about)) return 1;
  const all = [symbol.values].flat(Infinity).filter((value) => value !== null);
  return Math.max(...all.map(Math.abs), 1e-9);
}

/** Where the window of a large matrix stands, and buttons that move it. */
function windowOf(symbol, move) {
  // Likely tokens of a vocabulary are no window.
  const places = symbol.axes.map(({ at, letter }) => (letter === "V" ? null : at));
  if (places.every((at) => !at)) return null;
  const starts = symbol.axes.map(({ at }, axis) => (places[axis] ? at[0] : 0));
  const button = (axis, by, text, name) => {
    const to = starts[axis] + by * places[axis].length;
    return h("button", { type: "button", "aria-label": say(name), disabled: to < 0 || to >= symbol.axes[axis].size,
      onclick: () => move(symbol.id, starts.map((start, i) => (i === axis ? to : start))) }, text);
  };
  return h("div", { class: "windows" }, symbol.axes.map(({ letter, size }, axis) => places[axis] && h("span", {},
    button(axis, -1, "←", "sheet.before"), ` ${letter} ${starts[axis] + 1}–${places[axis].at(-1) + 1} / ${size} `, button(axis, 1, "→", "sheet.behind"))));
}

// Pointing. One listener serves all numbers, however often the page is drawn anew.

const lineOf = () => document.querySelector(".arithmetic");

function darken() {
  for (const each of document.querySelectorAll(".lit, .pointed")) each.classList.remove("lit", "pointed");
}

/** Light a number's parts, and write its arithmetic out. */
function pointAtNumber(cell) {
  darken();
  cell.classList.add("pointed");
  const id = cell.dataset.cell;
  const symbol = sheet.get(id);
  const place = cell.dataset.place === "" ? [] : cell.dataset.place.split(",").map(Number);
  const { cells, text } = madeOf(sheet, id, place);
  const sources = new Set();
  for (const [source, at] of cells) {
    document.getElementById(cellId(source, at))?.classList.add("lit");
    sources.add(source);
  }
  for (const source of sources) lightChips(source);
  const where = place.map((at, axis) => placeName(symbol.axes[axis], at)).join(", ");
  lineOf()?.replaceChildren(...mathName(symbol), where && h("small", {}, `[${where}]`), ` = ${explained(symbol, text)}`,
    text === null ? ` ${written(sheet.value(id, place), 6)}` : ` = ${written(sheet.value(id, place), 4)}`);
}

function placeName(axis, at) {
  const shown = axis.at ? axis.at.indexOf(at) : at;
  return axis.labels ? label(axis.labels[shown]) : String(at + 1);
}

/** The arithmetic, or why there is none. */
function explained(symbol, text) {
  if (text !== null) return text;
  if (symbol.made_from === null) return `${say("sheet.given")}:`;
  return `${say(symbol.made_from.op === "change" ? "sheet.changed" : "sheet.module")}:`;
}

const lightChips = (id) => {
  for (const chip of document.querySelectorAll(`[data-symbol="${CSS.escape(id)}"]`)) chip.classList.add("lit");
};

/** Light all numbers of a symbol. */
function pointAtSymbol(chip) {
  darken();
  const id = chip.dataset.symbol;
  lightChips(id);
  for (const cell of document.querySelectorAll(`[data-cell="${CSS.escape(id)}"]`)) cell.classList.add("lit");
  const symbol = sheet.get(id);
  lineOf()?.replaceChildren(...mathName(symbol), ` ${plainAbout(symbol)} ${shapeText(symbol.shape)}`);
}

function point({ target }) {
  const found = target.closest?.("[data-cell], [data-symbol]");
  if (!found || !numbers.has(found.dataset.cell ?? found.dataset.symbol)) return;
  if (found.dataset.cell !== undefined) pointAtNumber(found);
  else pointAtSymbol(found);
}

/** Move from number to number; one of a table can be reached by Tab. */
function move(event) {
  const cell = event.target.closest?.("[data-cell]");
  const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (!cell || !by) return;
  event.preventDefault();
  const cellsOf = (row) => [...row.querySelectorAll("[data-cell]")];
  const rows = [...cell.closest("tbody").rows];
  const row = rows.indexOf(cell.parentElement);
  const column = cellsOf(cell.parentElement).indexOf(cell);
  const to = cellsOf(rows[row + by[0]] ?? cell.parentElement)[column + by[1]];
  if (!to) return;
  cell.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

document.addEventListener("pointerover", point);
document.addEventListener("focusin", point);
document.addEventListener("keydown", move);

/** The symbols as tables for a file of numbers: the name in the corner, then a line a row. */
export const symbolTables = (symbols) => symbols.map((symbol) => {
  const axes = symbol.axes;
  const names = (axis) => placesOf(axis).map((at, i) => axis.labels?.[i] ?? at + 1);
  const number = (value) => value ?? "-inf";
  const corner = symbol.id.replaceAll(MINUS, "-"); // which every program can read
  if (axes.length === 0) return [[corner], [number(symbol.values)]];
  if (axes.length === 1) return [[corner, ...names(axes[0])], ["", ...symbol.values.map(number)]];
  const rows = names(axes[0]).map((name, i) => [name, ...symbol.values[i].map(number)]);
  return [[corner, ...names(axes[1])], ...rows];
});
