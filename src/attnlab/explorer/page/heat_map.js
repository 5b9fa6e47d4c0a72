// The figure of an attention: cells or lines, what a person points at in words, the legend, and the numbers as a table.
// Its cells have the elements and classes of attnlab/plots/heat_map.html, and share heat_map.css with it.

import { cells } from "explorer/cells.js";
import { h, scrolling } from "explorer/dom.js";
import { LEVELS } from "explorer/colours.js";
import { label, terminalColumns } from "explorer/labels.js";
import { lines } from "explorer/lines.js";
import { stepButtons } from "explorer/step_buttons.js";
import { say } from "explorer/words.js";

let asLines = false;

/** Whether the maps that are drawn from now on have lines in place of cells. */
export function drawLines(wanted) {
  asLines = wanted;
}

/**
 * The figure; a model without attention has a sentence in its place.
 *
 * @param {string} name of the map on its page
 * @param {{source, target, attention, log_probs}} answer as the server gives it
 * @param {{selected, onselect, changed, marks, title, abreast, ever}} options: a target token's number, what a click on one
 *   does, the numbers of tokens that differ from another map, known links and wrong words {sure, possible, wrong} as
 *   `marksOf` gives them, how many maps stand abreast, the target tokens of all maps that take turns here, whose cells
 *   then have one size
 */
export function heatMap(name, answer, { selected = null, onselect = null, changed = [], marks = null, title = null, abreast = 1, ever = null } = {}) {
  const { source, target, attention } = answer;
  if (attention === null) return withoutMap(name, target, { selected, onselect, title });

  const options = { selected, onselect, changed: new Set(changed), wrong: new Set(marks?.wrong ?? []), marks };
  const draw = asLines ? lines : cells;
  const { hint, body, reading } = draw(name, answer, options);

  const targets = ever ?? [target];
  const widest = Math.max(0, ...targets.flat().map((token) => terminalColumns(label(token)))) + (options.wrong.size ? 2 : 0);
  const sizes = { "--columns": source.length, "--rows": target.length, "--label-width": `${10 * widest + 18}px` };
  if (ever) sizes["--heat-largest"] = `max(44px, calc(72vh / ${Math.max(...ever.map((each) => each.length))}))`;
  if (abreast > 1) sizes["--heat-smallest"] = "20px";

  return h("figure", { class: "map heat-map", "data-key": name, style: sizes },
    title && h("figcaption", {}, title),
    hint,
    body,
    h("output", { "aria-live": "polite" }, reading),
    legend(marks),
    table(name, answer));
}

/** What stands in place of a map; steps are chosen by buttons there. */
function withoutMap(name, target, { selected, onselect, title }) {
  return h("figure", { class: "map", "data-key": name },
    title && h("figcaption", {}, title),
    h("p", { class: "quiet" }, say("noAttention")),
    onselect && stepButtons(target, selected, onselect));
}

/** The scale, and the marks that the map has. */
function legend(marks) {
  const colours = Array.from({ length: LEVELS + 1 }, (_, each) => h("i", { class: `heat-${each}` }));
  return h("div", { class: "heat-legend" },
    !asLines && h("span", { class: "heat-scale", "aria-hidden": true }, "0", h("span", {}, colours),
      h("b", { class: "heat-when-absolute" }, "1"), h("b", { class: "heat-when-relative" }, say("largestOfRow"))),
    !asLines && marks?.sure.length > 0 && h("span", { class: "heat-key sure" }, say("knownLink")),
    !asLines && marks?.possible.length > 0 && h("span", { class: "heat-key possible" }, say("possibleLink")),
    marks && h("span", { class: "heat-key wrong" }, h("b", { class: "heat-wrong-sign" }, say("token")), " ", say("wrongHint")));
}

const openTables = new Set(); // names of maps whose table is shown

/** The same numbers for a screen reader; made when it is opened. */
function table(name, { source, target, attention }) {
  const row = (token, weights) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, label(token))),
    weights.map((weight) => h("td", {}, weight.toFixed(5))));
  const numbers = () => scrolling(say("table"), h("table", {},
    h("thead", {}, h("tr", {}, h("td", {}), source.map((token) => h("th", { scope: "col" }, h("bdi", {}, label(token)))))),
    h("tbody", {}, target.map((token, i) => row(token, attention[i])))));
  const open = openTables.has(name);
  const toggle = ({ currentTarget: details }) => {
    openTables[details.open ? "add" : "delete"](name);
    if (details.open && !details.querySelector("table")) details.append(numbers());
  };
  return h("details", { class: "table", open, ontoggle: toggle }, h("summary", {}, say("table")), open && numbers());
}
