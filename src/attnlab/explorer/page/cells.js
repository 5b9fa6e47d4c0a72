// An attention as cells: source above, target at the left, one cell a weight. Mouse, touch and arrow keys read its values.

import { h } from "explorer/dom.js";
import { level } from "explorer/colours.js";
import { label, terminalColumns, weightText } from "explorer/labels.js";
import { say } from "explorer/words.js";

const WIDEST_HEAD = 3; // terminal columns of a head that lies flat
const cursors = new Map(); // of each map, by its name

/** What `heatMap` puts into its figure; arguments as it takes them, with `changed` and `wrong` as sets. */
export function cells(name, { source, target, attention }, { selected, onselect, changed, wrong, marks }) {
  const [rows, columns] = [target.length, source.length];
  const percent = (part, whole) => `${Number((100 * part / whole).toPrecision(5))}%`;
  const at = (row, column) => ({ x: percent(column, columns), y: percent(row, rows) });
  const sized = (row, column) => ({ ...at(row, column), width: percent(1, columns), height: percent(1, rows) });

  const heads = h("div", { class: "heat-heads" }, source.map(head));
  const labels = h("div", { class: "heat-labels" }, target.map((token, row) => {
    const classes = [row === selected && "selected", changed.has(row) && "changed", wrong.has(row) && "wrong"];
    const properties = { class: classes.filter(Boolean).join(" ") || null, title: label(token) };
    const text = h("bdi", {}, label(token));
    if (!onselect) return h("span", properties, text);
    return h("button", { ...properties, type: "button", "aria-pressed": String(row === selected), onclick: () => onselect(row) }, text);
  }));

  const drawing = () => h("svg", {
    class: "heat-cells", tabindex: 0, role: "application",
    "aria-roledescription": say("heatMap"), "aria-label": say("mapLabel", rows, columns),
    onpointerdown: point, onpointermove: point, onclick: choose, onkeydown: move,
    onfocus: (event) => go(event.currentTarget, ...cursor()),
  },
  attention.flatMap((weights, row) => weights.map((weight, column) => cell(weights, row, weight, column))),
  ["possible", "sure"].flatMap((kind) => (marks?.[kind] ?? []).map((link) =>
    h("svg", { class: `heat-link ${kind}`, ...sized(...link) }, h("rect", {}), h("rect", {})))),
  selected === null ? null : h("rect", { class: "row", ...sized(selected, 0), width: "100%" }),
  h("rect", { class: "cursor", rx: 3, ...place(cursors.get(name)) }));

  /** A cell, where its weight can be seen on one of the two scales. */
  function cell(weights, row, weight, column) {
    const text = weightText(weight);
    const rowLevel = level(weight / Math.max(...weights.map(Math.abs), Number.MIN_VALUE));
    if (text === "" && rowLevel === 0) return null;
    return h("g", { class: `heat-${level(weight)} heat-row-${rowLevel}` },
      h("rect", at(row, column)), h("text", at(row + 0.5, column + 0.5), text));
  }

  function cursor() {
    const [row, column] = cursors.get(name) ?? [0, 0];
    return [Math.min(row, rows - 1), Math.min(column, columns - 1)];
  }

  function place(found) {
    const isInside = found && found[0] < rows && found[1] < columns;
    return isInside ? sized(...found) : { ...sized(0, 0), visibility: "hidden" };
  }

  /** Put the cursor where a mouse, pen or finger is. */
  function point(event) {
    const box = event.currentTarget.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top) * rows / box.height);
    const column = Math.floor((event.clientX - box.left) * columns / box.width);
    go(event.currentTarget, row, column);
  }

  function choose(event) {
    // A screen reader clicks without a place.
    if (event.detail > 0) point(event);
    onselect?.(cursor()[0]);
  }

  function move(event) {
    const [row, column] = cursor();
    const moves = { ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1], Home: [row, 0], End: [row, columns - 1] };
    if (event.key === "Enter") onselect?.(row);
    if (!moves[event.key]) return;
    event.preventDefault();
    go(event.currentTarget, ...moves[event.key], true);
  }

  /** Move the cursor, and say what stands there. */
  function go(svg, row, column, follow = false) {
    const found = [Math.min(Math.max(row, 0), rows - 1), Math.min(Math.max(column, 0), columns - 1)];
    cursors.set(name, found);
    const box = svg.querySelector(".cursor");
    box.setAttribute("visibility", "visible");
    for (const [key, value] of Object.entries(at(...found))) box.setAttribute(key, value);
    const figure = svg.closest("figure");
    figure.querySelector("output").textContent = reading(found);
    figure.querySelectorAll(".heat-heads > *").forEach((each, i) => each.classList.toggle("here", i === found[1]));
    figure.querySelectorAll(".heat-labels > *").forEach((each, i) => each.classList.toggle("here", i === found[0]));
    if (follow) box.scrollIntoView?.({ block: "nearest", inline: "nearest" });
  }

  function reading(found) {
    if (!found || found[0] >= rows || found[1] >= columns) return say("mapHint");
    const [row, column] = found;
    return `${label(target[row])} ← ${label(source[column])}: ${attention[row][column].toFixed(4)}`;
  }

  return {
    hint: h("p", { class: "heat-hint", "aria-hidden": "true" }, say("scrollHint", columns)),
    body: h("div", { class: "heat-scroll" }, h("div", { class: "heat-grid" }, h("div", { class: "heat-corner" }), heads, labels, drawing())),
    reading: reading(cursors.get(name)),
  };
}

function head(token) {
  const text = label(token);
  const isLong = terminalColumns(text) > WIDEST_HEAD;
  return h("span", { title: text, class: isLong ? "long" : null }, h("bdi", {}, text));
}
