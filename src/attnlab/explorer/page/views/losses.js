// The sentences of the test split by their loss, from which one chooses a sentence. The server computes them in the
// background, once a model; the page asks how far it is.

import { askAnew } from "explorer/ask.js";
import { h, scrolling } from "explorer/dom.js";
import { say } from "explorer/words.js";

const PAGE = 50; // sentences that are shown at first, and more at each wish
const MOST = 500;
const AGAIN = 700; // milliseconds between two questions

let timer = null;

export const losses = {
  name: "losses",
  kind: "translation",
  isLive: true, // its answers change, so that no page is saved with them
  needsNoText: true,

  fits: ({ has_test_set: hasTestSet }) => Boolean(hasTestSet),

  load: (state) => askAnew(["losses", { model: state.model, start: 0, count: countOf(state), order: orderOf(state) }]),

  draw(state, { done, total, rows }, update) {
    clearTimeout(timer);
    if (done < total) timer = setTimeout(() => update({}), AGAIN);
    const count = countOf(state);
    const more = Math.min(count + PAGE, MOST);
    return h("div", {},
      h("section", { class: "panel" },
        h("p", { class: "quiet" }, say("lossHint")),
        h("fieldset", { class: "choices" }, h("legend", {}, say("lossOrder")), ["worst", "best"].map((order) => h("label", {},
          h("input", { type: "radio", name: "loss-order", checked: orderOf(state) === order,
            onchange: () => update({ losses: { order } }) }), say(order)))),
        done < total && progress(done, total)),
      scrolling(say("view.losses"), h("table", { class: "losses" },
        h("caption", {}, say("lossCaption", done)),
        h("thead", {}, h("tr", {}, ["loss", "exact", "source", "reference", "translation"].map((name, i) => h("th", { scope: "col", class: i < 2 ? null : "text" }, say(name))))),
        h("tbody", {}, rows.map((row) => line(row, update))))),
      rows.length === count && count < MOST && h("p", {}, h("button", { type: "button",
        onclick: () => update({ losses: { order: orderOf(state), count: more } }) }, say("moreSentences"))));
  },

  tables(state, { rows }) {
    if (rows.length === 0) return [];
    const numbers = rows.map((row) => [row.row, row.loss, Number(row.exact), row.source, row.reference, row.translation]);
    return [[["row", "loss", "exact", "source", "reference", "translation"], ...numbers]];
  },
};

const orderOf = (state) => state.losses?.order ?? "worst";
const countOf = (state) => state.losses?.count ?? PAGE;

function progress(done, total) {
  return h("div", { class: "progress", role: "status" },
    h("progress", { max: total, value: done, "aria-label": say("lossProgress", done, total) }), ` ${say("lossProgress", done, total)}`);
}

/** A sentence; choosing it opens its heat map, with its reference beside. */
function line({ source, reference, translation, loss, exact }, update) {
  const choose = () => update({ view: "translate", text: source, reference });
  return h("tr", {},
    h("td", {}, loss.toFixed(4)),
    h("td", {}, h("span", { class: exact ? "right" : "wrong-sign", role: "img", "aria-label": say(exact ? "isExact" : "isNotExact") }, exact ? "✓" : "✗")),
    h("th", { scope: "row", class: "text" }, h("button", { type: "button", class: "link", onclick: choose }, h("bdi", {}, source))),
    h("td", { class: "text" }, h("bdi", {}, reference)),
    h("td", { class: "text" }, h("bdi", {}, translation)));
}
