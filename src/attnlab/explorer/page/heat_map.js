// The heat map: source above, target at the left, one cell a weight. Mouse and arrow keys read its values.

import { h } from "explorer/dom.js";
import { colour } from "explorer/colours.js";
import { say } from "explorer/words.js";

const [SMALLEST, LARGEST] = [14, 24]; // sides of a cell in pixels
const VISIBLE = 0.004; // weights below look like paper
const cursors = new Map(); // of each map, by its name
export const drawn = new Map(); // what each map shows, by its name

/**
 * @param {string} name of the map on its page
 * @param {{source, target, attention, log_probs}} answer as the server gives it
 * @param {{selected, onselect, changed, gold, title, abreast}} options: a target token's number, what a click on one
 *   does, the numbers of tokens to mark, links {sure, possible} of [row, column] to outline, how many maps stand abreast
 */
export function heatMap(name, answer, { selected = null, onselect = null, changed = [], gold = null, title = null, abreast = 1 } = {}) {
  const { source, target, attention } = answer;
  drawn.set(name, answer);
  const [rows, columns] = [target.length, source.length];
  const marked = new Set(changed);
  const room = (Math.min(innerWidth, 1280) - 40) / Math.min(abreast, 2) - 110;
  const CELL = innerWidth < 760 ? 22 : Math.min(Math.max(Math.floor(room / columns), SMALLEST), LARGEST);

  const heads = h("div", { class: "heads" }, source.map((token) =>
    h("span", { title: token, class: [...token].length > 1 ? "long" : "" }, h("bdi", {}, token))));
  const labels = h("div", { class: "labels" }, target.map((token, row) => {
    const classes = [row === selected ? "selected" : "", marked.has(row) ? "changed" : ""].join(" ").trim();
    const text = h("bdi", {}, token);
    return onselect
      ? h("button", { class: classes, type: "button", "aria-pressed": row === selected, onclick: () => onselect(row) }, text)
      : h("span", { class: classes }, text);
  }));

  const body = attention === null
    ? h("p", { class: "quiet" }, say("noAttention"))
    : h("svg", {
      class: "cells", width: columns * CELL, height: rows * CELL, tabindex: 0, role: "application",
      "aria-roledescription": "heat map", "aria-label": say("mapLabel", rows, columns),
      onpointermove: (event) => {
        const box = event.currentTarget.getBoundingClientRect();
        go(event.currentTarget, Math.floor((event.clientY - box.top) / CELL), Math.floor((event.clientX - box.left) / CELL));
      },
      onclick: (event) => onselect?.(cursors.get(name)?.[0] ?? 0),
      onfocus: (event) => go(event.currentTarget, ...(cursors.get(name) ?? [0, 0])),
      onkeydown: (event) => {
        const [row, column] = cursors.get(name) ?? [0, 0];
        const moves = { ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1],
          ArrowRight: [row, column + 1], Home: [row, 0], End: [row, columns - 1] };
        if (event.key === "Enter") onselect?.(row);
        if (!moves[event.key]) return;
        event.preventDefault();
        go(event.currentTarget, ...moves[event.key], true);
      },
    },
    attention.flatMap((weights, row) => weights.map((weight, column) => weight < VISIBLE ? null
      : h("rect", { x: column * CELL + 1, y: row * CELL + 1, width: CELL - 2, height: CELL - 2, rx: 2, fill: colour(weight) }))),
    ["possible", "sure"].flatMap((kind) => (gold?.[kind] ?? []).map(([row, column]) =>
      h("rect", { class: `gold ${kind}`, x: column * CELL + 1, y: row * CELL + 1, width: CELL - 2, height: CELL - 2, rx: 2 }))),
    selected === null ? null : h("rect", { class: "row", x: 0, y: selected * CELL, width: columns * CELL, height: CELL }),
    h("rect", { class: "cursor", width: CELL, height: CELL, rx: 3, ...place(cursors.get(name)) }));

  function place(cursor) {
    return cursor && cursor[0] < rows && cursor[1] < columns
      ? { x: cursor[1] * CELL, y: cursor[0] * CELL } : { x: 0, y: 0, visibility: "hidden" };
  }

  /** Move the cursor, and say what stands there. */
  function go(svg, row, column, follow = false) {
    const at = [Math.min(Math.max(row, 0), rows - 1), Math.min(Math.max(column, 0), columns - 1)];
    cursors.set(name, at);
    const box = svg.querySelector(".cursor");
    box.setAttribute("visibility", "visible");
    box.setAttribute("x", at[1] * CELL);
    box.setAttribute("y", at[0] * CELL);
    const figure = svg.closest("figure");
    figure.querySelector("output").textContent = reading(at);
    figure.querySelectorAll(".heads > *").forEach((head, i) => head.classList.toggle("here", i === at[1]));
    figure.querySelectorAll(".labels > *").forEach((label, i) => label.classList.toggle("here", i === at[0]));
    if (follow) box.scrollIntoView?.({ block: "nearest", inline: "nearest" });
  }

  function reading(cursor) {
    if (!cursor || cursor[0] >= rows || cursor[1] >= columns || attention === null) return say("mapHint");
    return `${target[cursor[0]]} ← ${source[cursor[1]]}: ${attention[cursor[0]][cursor[1]].toFixed(4)}`;
  }

  return h("figure", { class: "map", "data-key": name, style: { "--cell": `${CELL}px` } },
    title && h("figcaption", {}, title),
    h("div", { class: "scroll" }, h("div", { class: "grid" }, h("div", { class: "corner" }), heads, labels, body)),
    attention && h("div", { class: "legend" }, h("output", { "aria-live": "polite" }, reading(cursors.get(name))),
      h("span", { class: "scale", "aria-hidden": true }, "0",
        [0, 0.2, 0.4, 0.6, 0.8, 1].map((weight) => h("i", { style: { background: colour(weight) } })), "1")),
    attention && table(name, answer));
}

const openTables = new Set(); // names of maps whose table is shown

/** The same numbers for a screen reader; made when it is opened. */
function table(name, { source, target, attention }) {
  const rows = () => h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, h("td", {}), source.map((token) => h("th", { scope: "col" }, h("bdi", {}, token))))),
    h("tbody", {}, target.map((token, row) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, token)),
      attention[row].map((weight) => h("td", {}, weight.toFixed(5))))))));
  const open = openTables.has(name);
  const toggle = ({ currentTarget: details }) => {
    openTables[details.open ? "add" : "delete"](name);
    if (details.open && !details.querySelector("table")) details.append(rows());
  };
  return h("details", { class: "table", open, ontoggle: toggle }, h("summary", {}, say("table")), open && rows());
}
