// A given translation, fed token by token, beside what the model writes by itself.

import { ask, isSaved } from "explorer/ask.js";
import { h } from "explorer/dom.js";
import { heatMap } from "explorer/heat_map.js";
import { say } from "explorer/words.js";
import { differing } from "explorer/views/translate.js";

export const reference = {
  name: "reference",
  kind: "translation",

  async load(state, base) {
    const target = state.reference ?? base.text;
    return { base, target, fed: await ask(["score", { model: state.model, text: state.text, target }]) };
  },

  draw(state, { base, target, fed }, update) {
    const total = (answer) => answer.log_probs.reduce((sum, each) => sum + each, 0).toFixed(4);
    return h("div", {},
      h("section", { class: "panel" }, h("label", {}, h("span", { class: "label" }, say("referenceText")),
        h("input", { type: "text", class: "wide", value: target, readonly: isSaved,
          oninput: (event) => update({ reference: event.currentTarget.value }) })),
      h("p", { class: "quiet" }, say("referenceHint"))),
      h("div", { class: "maps" },
        heatMap("fed", fed, { abreast: 2, changed: differing(fed, base), title: say("fed", total(fed)) }),
        heatMap("free", base, { abreast: 2, changed: differing(base, fed), title: say("free", total(base)) })),
      h("div", { class: "scroll" }, h("table", { class: "effects" }, h("caption", {}, say("stepByStep")),
        h("thead", {}, h("tr", {}, ["step", "referenceToken", "logProb", "likeliestToken", "probability"].map((name) =>
          h("th", { scope: "col" }, say(name === "step" ? "chooseStep" : name))))),
        h("tbody", {}, fed.target.map((token, i) => h("tr", {}, h("th", { scope: "row" }, i + 1), h("td", {}, h("bdi", {}, token)),
          h("td", {}, fed.log_probs[i].toFixed(4)), h("td", { class: fed.likeliest[i][0][0] === token ? "" : "changed" }, h("bdi", {}, fed.likeliest[i][0][0])),
          h("td", {}, fed.likeliest[i][0][2].toFixed(4))))))));
  },
};
