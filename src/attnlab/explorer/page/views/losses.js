// The sentences of the test split by their loss, from which one chooses a sentence. The server computes them in the
// background, once a model; the page asks how far it is.

import { askAnew } from "explorer/ask.js";
import { h, scrolling } from "explorer/dom.js";
import { say } from "explorer/words.js";

const PAGE = 50; // sentences that are shown at first, and more at each wish
const MOST = 500;
const AGAIN = 700; // milliseconds between two questions

/** A sentence with its reference; choosing it opens its heat map, with the reference beside. */
const PAIR = {
  hint: "lossHint",
  columns: ["loss", "exact", "source", "reference", "translation"],
  isRight: ({ exact }) => exact,
  verdicts: ["isExact", "isNotExact"],
  textOf: ({ source }) => source,
  others: ({ reference, translation }) => [reference, translation],
  opened: ({ source, reference }) => ({ view: "translate", text: source, reference }),
};

/** A sentence with its class; choosing it opens its weights. */
const LABELLED = {
  hint: "classLossHint",
  columns: ["loss", "correct", "text", "class", "prediction"],
  isRight: ({ correct }) => correct,
  verdicts: ["isCorrect", "isNotCorrect"],
  textOf: ({ text }) => text,
  others: ({ label, prediction, probability }) => [label, `${prediction} (${probability.toFixed(4)})`],
  opened: ({ text }) => ({ view: "classify", text }),
};

let timer = null;

export const losses = {
  name: "losses",
  kind: "translation",
  isLive: true, // its answers change, so that no page is saved with them
  needsNoText: true,

  fits: ({ has_test_set: hasTestSet }) => Boolean(hasTestSet),

  load: (state) => askAnew(["losses", { model: state.model, start: 0, count: countOf(state), order: orderOf(state) }]),

  draw: (state, answer, update) => page(state, answer, update, PAIR),

  tables: (state, { rows }) => tables(["row", "loss", "exact", "source", "reference", "translation"], rows),
};

export const lossesOfClassifier = {
  ...losses,
  kind: "classification",

  draw: (state, answer, update) => page(state, answer, update, LABELLED),

  tables: (state, { rows }) => tables(["row", "loss", "correct", "text", "label", "prediction", "probability"], rows),
};

const orderOf = (state) => state.losses?.order ?? "worst";
const countOf = (state) => state.losses?.count ?? PAGE;

function page(state, { done, total, rows }, update, kind) {
  clearTimeout(timer);
  if (done < total) timer = setTimeout(() => update({}), AGAIN);
  const count = countOf(state);
  const more = Math.min(count + PAGE, MOST);
  return h("div", {},
    h("section", { class: "panel" },
      h("p", { class: "quiet" }, say(kind.hint)),
      h("fieldset", { class: "choices" }, h("legend", {}, say("lossOrder")), ["worst", "best"].map((order) => h("label", {},
        h("input", { type: "radio", name: "loss-order", checked: orderOf(state) === order,
          onchange: () => update({ losses: { order } }) }), say(order)))),
      done < total && progress(done, total)),
    scrolling(say("view.losses"), h("table", { class: "losses" },
      h("caption", {}, say("lossCaption", done)),
      h("thead", {}, h("tr", {}, kind.columns.map((name, i) => h("th", { scope: "col", class: i < 2 ? null : "text" }, say(name))))),
      h("tbody", {}, rows.map((row) => line(row, update, kind))))),
    rows.length === count && count < MOST && h("p", {}, h("button", { type: "button",
      onclick: () => update({ losses: { order: orderOf(state), count: more } }) }, say("moreSentences"))));
}

function progress(done, total) {
  return h("div", { class: "progress", role: "status" },
    h("progress", { max: total, value: done, "aria-label": say("lossProgress", done, total) }), ` ${say("lossProgress", done, total)}`);
}

function line(row, update, { isRight, verdicts, textOf, others, opened }) {
  const [right, wrong] = verdicts;
  const verdict = isRight(row)
    ? h("span", { class: "right", role: "img", "aria-label": say(right) }, "✓")
    : h("span", { class: "wrong-sign", role: "img", "aria-label": say(wrong) }, "✗");
  const choose = h("button", { type: "button", class: "link", onclick: () => update(opened(row)) }, h("bdi", {}, textOf(row)));
  return h("tr", {}, h("td", {}, row.loss.toFixed(4)), h("td", {}, verdict), h("th", { scope: "row", class: "text" }, choose),
    others(row).map((text) => h("td", { class: "text" }, h("bdi", {}, text))));
}

/** The columns of the rows for a file of numbers; true is 1 there. */
function tables(names, rows) {
  if (rows.length === 0) return [];
  const numbered = (value) => (typeof value === "boolean" ? Number(value) : value);
  return [[names, ...rows.map((row) => names.map((name) => numbered(row[name])))]];
}
