// One sentence, up to four models, the same colours.

import { ask } from "explorer/ask.js";
import { mapTables } from "explorer/csv.js";
import { h } from "explorer/dom.js";
import { heatMap } from "explorer/heat_map.js";
import { modelName, say } from "explorer/words.js";

const MOST = 4;

export const compare = {
  name: "compare",
  kind: "translation",

  async load(state, base, models) {
    const translators = models.filter((model) => model.kind === "translation").map((model) => model.name);
    const wanted = new Set([state.model, ...(state.models.length ? state.models : translators)].filter((name) => translators.includes(name)));
    const names = translators.filter((name) => [...wanted].slice(0, MOST).includes(name));
    const answers = await Promise.all(names.map((model) => ask(["translate", { model, text: state.text }])));
    return { translators, names, answers };
  },

  draw(state, { translators, names, answers }, update, models) {
    const shown = (name) => modelName(models.find((model) => model.name === name), models);
    const toggle = (name) => names.includes(name) ? names.filter((each) => each !== name) : [...names, name];
    return h("div", {},
      h("fieldset", { class: "choices" }, h("legend", {}, say("compareHint", MOST)), translators.map((name) =>
        h("label", {}, h("input", { type: "checkbox", checked: names.includes(name),
          disabled: name === state.model || (!names.includes(name) && names.length === MOST),
          onchange: () => update({ models: toggle(name) }) }), shown(name)))),
      h("div", { class: "maps" }, answers.map((answer, i) => heatMap(`model-${i}`, answer,
        { abreast: answers.length, title: h("span", {}, h("b", {}, shown(names[i])), h("br"), h("bdi", {}, answer.text), ` · ${answer.score.toFixed(4)}`) }))));
  },

  tables: (state, { names, answers }) => mapTables(names.map((name, i) => [name, answers[i]])),
};
