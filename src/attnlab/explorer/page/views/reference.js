// A given translation, fed token by token, beside what the model writes by itself.

import { ask, isSaved } from "explorer/ask.js";
import { mapTables } from "explorer/csv.js";
import { h, scrolling } from "explorer/dom.js";
import { heatMap } from "explorer/heat_map.js";
import { marksOf } from "explorer/marks.js";
import { typed } from "explorer/typing.js";
import { say } from "explorer/words.js";
import { differing } from "explorer/views/translate.js";

export const reference = {
  name: "reference",
  kind: "translation",

  async load(state, base) {
    const target = state.reference ?? base.text;
    const pairs = await ask(["pairs", { model: state.model }]);
    const fed = await ask(["score", { model: state.model, text: state.text, target }]);
    const gold = pairs.find((pair) => pair.source === state.text && pair.target === target);
    return { base, target, fed, pairs, gold, marks: await marksOf(state.model, base, fed, gold),
      fedMarks: gold && await marksOf(state.model, fed, fed, gold) };
  },

  draw(state, { base, target, fed, pairs, gold, marks, fedMarks }, update) {
    const total = (answer) => answer.log_probs.reduce((sum, each) => sum + each, 0).toFixed(4);
    return h("div", {},
      h("section", { class: "panel" },
        pairs.length > 0 && h("label", {}, h("span", { class: "label" }, say("pairs")),
          h("select", { class: "wide", disabled: isSaved, onchange: ({ currentTarget: { value } }) => value &&
            update({ text: pairs[value].source, reference: pairs[value].target }) },
          h("option", { value: "", selected: !gold }, "…"),
          pairs.map((pair, i) => h("option", { value: i, selected: pair === gold }, `${pair.source} → ${pair.target}`)))),
        h("label", {}, h("span", { class: "label" }, say("referenceText")),
        h("input", { type: "text", class: "wide", value: target, readonly: isSaved,
          oninput: typed((text) => update({ reference: text }, "gradual")) })),
      h("p", { class: "quiet" }, say("referenceHint")),
      gold?.possible.length > 0 && fed.attention && h("p", { class: "agreement" }, say("goldAgreement", ...agreement(fed, gold)))),
      h("div", { class: "maps" },
        heatMap("fed", fed, { abreast: 2, changed: differing(fed, base), marks: fedMarks, title: say("fed", total(fed)) }),
        heatMap("free", base, { abreast: 2, marks, title: say("free", total(base)) })),
      scrolling(say("stepByStep"), h("table", { class: "effects" }, h("caption", {}, say("stepByStep")),
        h("thead", {}, h("tr", {}, ["step", "referenceToken", "logProb", "likeliestToken", "probability"].map((name) =>
          h("th", { scope: "col" }, say(name === "step" ? "chooseStep" : name))))),
        h("tbody", {}, fed.target.map((token, i) => h("tr", {}, h("th", { scope: "row" }, i + 1), h("td", {}, h("bdi", {}, token)),
          h("td", {}, fed.log_probs[i].toFixed(4)), h("td", { class: fed.likeliest[i][0][0] === token ? "" : "changed" }, h("bdi", {}, fed.likeliest[i][0][0])),
          h("td", {}, fed.likeliest[i][0][2].toFixed(4))))))));
  },

  tables(state, { base, fed }) {
    const steps = fed.target.map((token, i) => {
      const [likeliest, , probability] = fed.likeliest[i][0];
      return [i + 1, token, fed.log_probs[i], likeliest, probability];
    });
    const names = ["step", "reference", "log_prob", "likeliest", "probability"];
    return [...mapTables([["fed", fed], ["free", base]]), [names, ...steps]];
  },
};

/** How many target tokens look most at a source token that they are linked to, and how many have links. */
function agreement({ attention }, { sure, possible }) {
  const links = new Set([...sure, ...possible].map(String));
  const linked = [...new Set([...sure, ...possible].map(([row]) => row))];
  const strongest = (row) => attention[row].indexOf(Math.max(...attention[row]));
  return [linked.filter((row) => links.has(String([row, strongest(row)]))).length, linked.length];
}
