// Pads before and behind the source, masked and not: where the weight goes.

import { ask } from "explorer/ask.js";
import { padFields } from "explorer/changes.js";
import { mapTables } from "explorer/csv.js";
import { h } from "explorer/dom.js";
import { marked } from "explorer/effects.js";
import { heatMap } from "explorer/heat_map.js";
import { say } from "explorer/words.js";

const START = { before: 0, behind: 4 };

/** The share of each step's weight that falls on pads. */
export const padWeight = ({ attention, source }) =>
  attention.map((row) => row.reduce((sum, weight, i) => sum + (source[i] === "<pad>" ? weight : 0), 0));

export const pads = {
  name: "pads",
  kind: "translation",

  async load(state, base) {
    const { before, behind } = { ...START, ...state.pads };
    const edit = { before, behind };
    const same = { model: state.model, text: state.text, edit };
    const answers = await Promise.all([true, false].map((isMasked) => {
      const change = base.attention === null ? {} : { intervene: { mask_pads: isMasked } };
      return ask(["translate", { ...same, ...change }]);
    }));
    return { base, edit, answers };
  },

  draw(state, { base, edit, answers }, update) {
    const mean = (answer) => padWeight(answer).reduce((sum, each) => sum + each, 0) / answer.target.length;
    return h("div", {},
      h("section", { class: "panel" }, h("div", { class: "controls" }, padFields(edit, update)),
        h("p", { class: "quiet" }, say("padsHint"))),
      h("div", { class: "maps" }, ["masked", "unmasked"].map((name, i) => h("div", { class: "half" }, h("h2", {}, say(name)),
        marked(answers[i], base),
        base.attention && h("p", { class: "quiet" }, say("onPads", (100 * mean(answers[i])).toFixed(2))),
        heatMap(name, answers[i], { abreast: 2 })))));
  },

  tables: (state, { answers }) => mapTables([["masked", answers[0]], ["unmasked", answers[1]]]),
};
