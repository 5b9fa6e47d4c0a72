// An attention as lines: source tokens above, target tokens below, a line as wide and as dark as its weight, whatever its sign.
// A token that is pointed at or focused keeps its lines; the others fade.

import { h } from "explorer/dom.js";
import { label, terminalColumns } from "explorer/labels.js";
import { say } from "explorer/words.js";

const HEIGHT = 240; // pixels between the two rows of tokens
const [LETTER, MARGIN, NARROWEST] = [10.5, 22, 34]; // pixels of a letter, around a token, and of a token
const LEAST = 0.01; // a smaller weight has no line, unless it is a large one of its row
const MOST_READ = 4; // tokens that are read out of one that is pointed at

/** What `heatMap` puts into its figure; arguments as it takes them, with `changed` and `wrong` as sets. */
export function lines(name, { source, target, attention }, { selected, onselect, changed, wrong }) {
  const [above, below] = [placesOf(source), placesOf(target)];
  const width = Math.max(above.width, below.width);
  const x = (places, i) => places.middles[i] + (width - places.width) / 2;

  const drawn = attention.map((row) => row.map(Math.abs)).flatMap((weights, row) => weights.map((weight, column) => {
    const share = weight / Math.max(...weights, Number.MIN_VALUE);
    if (weight < LEAST && share < 2 * LEAST) return null;
    return h("path", { d: curve(x(above, column), x(below, row)), "data-row": row, "data-column": column,
      class: row === selected ? "selected" : null, style: { "--share": weight, "--row-share": share } });
  }));

  /** One row of tokens; arrow keys go from one to the next. */
  const row = (side, tokens, places, token) => h("div", { class: `line-tokens ${side}`, role: "group", "aria-label": say(side),
    style: { width: `${width}px` }, onkeydown: step },
  tokens.map((each, i) => h("button", { ...token(each, i), type: "button", tabindex: i === 0 ? 0 : -1, title: label(each),
    style: { width: `${places.widths[i]}px` }, onpointerenter: light, onfocus: light, onpointerleave: fade }, h("bdi", {}, label(each)))));

  const sources = row("source", source, above, (_, column) => ({ "data-column": column,
    "aria-label": readingOf(source[column], target, attention.map((weights) => weights[column]), "→") }));
  const targets = row("target", target, below, (_, number) => ({ "data-row": number,
    "aria-label": readingOf(target[number], source, attention[number], "←"),
    "aria-pressed": onselect ? String(number === selected) : null,
    class: [number === selected && "selected", changed.has(number) && "changed", wrong.has(number) && "wrong"].filter(Boolean).join(" ") || null,
    onclick: onselect && (() => onselect(number)) }));

  const body = h("div", { class: "scroll line-map" }, sources,
    h("svg", { class: "line-drawing", role: "img", "aria-label": say("linesLabel", target.length, source.length),
      width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` }, drawn), targets);
  return { hint: null, body, reading: say("linesHint") };
}

/** The widths of tokens in a row, and where the middle of each is. */
function placesOf(tokens) {
  const widths = tokens.map((token) => Math.max(NARROWEST, LETTER * terminalColumns(label(token)) + MARGIN));
  const middles = [];
  let width = 0;
  for (const each of widths) {
    middles.push(width + each / 2);
    width += each;
  }
  return { widths, middles, width };
}

function curve(from, to) {
  const middle = HEIGHT / 2;
  return `M${from} 0C${from} ${middle} ${to} ${middle} ${to} ${HEIGHT}`;
}

/** A token with those of the other side that share most weight with it. */
function readingOf(token, others, weights, arrow) {
  const order = weights.map((_, i) => i).sort((one, other) => weights[other] - weights[one]);
  const strongest = order.slice(0, MOST_READ).filter((i) => weights[i] >= 0.00005);
  const read = strongest.map((i) => `${label(others[i])} ${weights[i].toFixed(4)}`);
  return `${label(token)} ${arrow} ${read.join(", ") || "0"}`;
}

/** Keep the lines of a token, and read its weights. */
function light({ currentTarget: token, type }) {
  const { row, column } = token.dataset;
  const figure = token.closest("figure");
  figure.querySelector(".line-drawing").classList.add("lit");
  for (const line of figure.querySelectorAll(".line-drawing path")) {
    line.classList.toggle("here", line.dataset.row === row || line.dataset.column === column);
  }
  figure.querySelector("output").textContent = token.getAttribute("aria-label");
  if (type === "focus") for (const each of token.parentElement.children) each.tabIndex = each === token ? 0 : -1;
}

function fade({ currentTarget: token }) {
  token.closest("figure").querySelector(".line-drawing").classList.remove("lit");
}

function step(event) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  const tokens = [...event.currentTarget.children];
  tokens[tokens.indexOf(document.activeElement) + by]?.focus();
}
