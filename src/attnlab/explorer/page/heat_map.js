// The heat map: source above, target at the left, one cell a weight. Mouse and arrow keys read its values.
// It has the elements and classes of attnlab/plots/heat_map.html, and shares heat_map.css with it.

import { h } from "explorer/dom.js";
import { LEVELS, level } from "explorer/colours.js";
import { label, terminalColumns, weightText } from "explorer/labels.js";
import { say } from "explorer/words.js";

const WIDEST_HEAD = 3; // terminal columns of a head that lies flat
const cursors = new Map(); // of each map, by its name
export const drawn = new Map(); // what each map shows, by its name

/**
 * @param {string} name of the map on its page
 * @param {{source, target, attention, log_probs}} answer as the server gives it
 * @param {{selected, onselect, changed, marks, title, abreast}} options: a target token's number, what a click on one
 *   does, the numbers of tokens that differ from another map, known links and wrong words {sure, possible, wrong} as
 *   `marksOf` gives them, how many maps stand abreast
 */
export function heatMap(name, answer, { selected = null, onselect = null, changed = [], marks = null, title = null, abreast = 1 } = {}) {
  const { source, target, attention } = answer;
  drawn.set(name, answer);
  const [rows, columns] = [target.length, source.length];
  const wrong = new Set(marks?.wrong ?? []);
  const differs = new Set(changed);

  const heads = h("div", { class: "heat-heads" }, source.map((token) => h("span",
    { title: label(token), class: terminalColumns(label(token)) > WIDEST_HEAD ? "long" : null }, h("bdi", {}, label(token)))));
  const labels = h("div", { class: "heat-labels" }, target.map((token, row) => {
    const classes = [row === selected && "selected", differs.has(row) && "changed", wrong.has(row) && "wrong"].filter(Boolean).join(" ");
    const text = h("bdi", {}, label(token));
    return onselect
      ? h("button", { class: classes, type: "button", "aria-pressed": row === selected, onclick: () => onselect(row) }, text)
      : h("span", { class: classes || null }, text);
  }));

  const at = (row, column) => ({ x: percent(column, columns), y: percent(row, rows) });
  const sized = (row, column) => ({ ...at(row, column), width: percent(1, columns), height: percent(1, rows) });

  const body = attention === null
    ? h("p", { class: "quiet" }, say("noAttention"))
    : h("svg", {
      class: "heat-cells", tabindex: 0, role: "application",
      "aria-roledescription": "heat map", "aria-label": say("mapLabel", rows, columns),
      onpointermove: (event) => {
        const box = event.currentTarget.getBoundingClientRect();
        const row = Math.floor((event.clientY - box.top) * rows / box.height);
        go(event.currentTarget, row, Math.floor((event.clientX - box.left) * columns / box.width));
      },
      onclick: () => onselect?.(cursors.get(name)?.[0] ?? 0),
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
    attention.flatMap((weights, row) => weights.map((weight, column) => weightText(weight) === "" ? null
      : h("g", { class: `heat-${level(weight)} heat-row-${level(weight / Math.max(...weights))}` },
        h("rect", sized(row, column)), h("text", at(row + 0.5, column + 0.5), weightText(weight))))),
    ["possible", "sure"].flatMap((kind) => (marks?.[kind] ?? []).map(([row, column]) =>
      h("svg", { class: `heat-link ${kind}`, ...sized(row, column) }, h("rect", {}), h("rect", {})))),
    selected === null ? null : h("rect", { class: "row", ...sized(selected, 0), width: "100%" }),
    h("rect", { class: "cursor", rx: 3, ...place(cursors.get(name)) }));

  function place(cursor) {
    const inside = cursor && cursor[0] < rows && cursor[1] < columns;
    return inside ? sized(...cursor) : { ...sized(0, 0), visibility: "hidden" };
  }

  /** Move the cursor, and say what stands there. */
  function go(svg, row, column, follow = false) {
    const cell = [Math.min(Math.max(row, 0), rows - 1), Math.min(Math.max(column, 0), columns - 1)];
    cursors.set(name, cell);
    const box = svg.querySelector(".cursor");
    box.setAttribute("visibility", "visible");
    for (const [key, value] of Object.entries(at(...cell))) box.setAttribute(key, value);
    const figure = svg.closest("figure");
    figure.querySelector("output").textContent = reading(cell);
    figure.querySelectorAll(".heat-heads > *").forEach((head, i) => head.classList.toggle("here", i === cell[1]));
    figure.querySelectorAll(".heat-labels > *").forEach((each, i) => each.classList.toggle("here", i === cell[0]));
    if (follow) box.scrollIntoView?.({ block: "nearest", inline: "nearest" });
  }

  function reading(cursor) {
    if (!cursor || cursor[0] >= rows || cursor[1] >= columns || attention === null) return say("mapHint");
    return `${label(target[cursor[0]])} ← ${label(source[cursor[1]])}: ${attention[cursor[0]][cursor[1]].toFixed(4)}`;
  }

  const widest = Math.max(0, ...target.map((token) => terminalColumns(label(token)))) + (wrong.size ? 2 : 0);
  const sizes = { "--columns": columns, "--rows": rows, "--label-width": `${10 * widest + 18}px` };
  if (abreast > 1) sizes["--heat-smallest"] = "20px";
  return h("figure", { class: "map heat-map", "data-key": name, style: sizes },
    title && h("figcaption", {}, title),
    attention && h("p", { class: "heat-hint", "aria-hidden": true }, say("scrollHint", columns)),
    h("div", { class: "heat-scroll" }, h("div", { class: "heat-grid" }, h("div", { class: "heat-corner" }), heads, labels, body)),
    attention && h("output", { "aria-live": "polite" }, reading(cursors.get(name))),
    attention && legend(marks),
    attention && table(name, answer));
}

const percent = (part, whole) => `${(100 * part / whole).toFixed(4)}%`;

/** The scale, and the marks that the map has. */
function legend(marks) {
  const colours = Array.from({ length: LEVELS + 1 }, (_, each) => h("i", { class: `heat-${each}` }));
  return h("div", { class: "heat-legend" },
    h("span", { class: "heat-scale", "aria-hidden": true }, "0", h("span", {}, colours),
      h("b", { class: "heat-when-absolute" }, "1"), h("b", { class: "heat-when-relative" }, say("largestOfRow"))),
    marks?.sure.length > 0 && h("span", { class: "heat-key sure" }, say("knownLink")),
    marks?.possible.length > 0 && h("span", { class: "heat-key possible" }, say("possibleLink")),
    marks && h("span", { class: "heat-key wrong" }, h("b", { class: "heat-wrong-sign" }, say("token")), " ", say("wrongHint")));
}

const openTables = new Set(); // names of maps whose table is shown

/** The same numbers for a screen reader; made when it is opened. */
function table(name, { source, target, attention }) {
  const rows = () => h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, h("td", {}), source.map((token) => h("th", { scope: "col" }, h("bdi", {}, label(token)))))),
    h("tbody", {}, target.map((token, row) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, label(token))),
      attention[row].map((weight) => h("td", {}, weight.toFixed(5))))))));
  const open = openTables.has(name);
  const toggle = ({ currentTarget: details }) => {
    openTables[details.open ? "add" : "delete"](name);
    if (details.open && !details.querySelector("table")) details.append(rows());
  };
  return h("details", { class: "table", open, ontoggle: toggle }, h("summary", {}, say("table")), open && rows());
}
