// One sentence, up to four models, the same colours.

import { ask } from "explorer/ask.js";
import { h } from "explorer/dom.js";
import { heatMap } from "explorer/heat_map.js";
import { say, shortName } from "explorer/words.js";

const MOST = 4;

export const compare = {
  name: "compare",
  kind: "translation",

  async load(state, base, models) {
    const translators = models.filter((model) => model.kind === "translation").map((model) => model.name);
    const names = (state.models.length ? state.models : translators).filter((name) => translators.includes(name)).slice(0, MOST);
    const answers = await Promise.all(names.map((model) => ask(["translate", { model, text: state.text }])));
    return { translators, names, answers };
  },

  draw(state, { translators, names, answers }, update) {
    const toggle = (name) => names.includes(name) ? names.filter((each) => each !== name) : [...names, name];
    return h("div", {},
      h("fieldset", { class: "choices" }, h("legend", {}, say("compareHint", MOST)), translators.map((name) =>
        h("label", {}, h("input", { type: "checkbox", checked: names.includes(name),
          disabled: names.includes(name) ? names.length === 1 : names.length === MOST,
          onchange: () => update({ models: toggle(name) }) }), shortName(name, translators)))),
      h("div", { class: "maps" }, answers.map((answer, i) => heatMap(`model-${i}`, answer,
        { abreast: answers.length, title: h("span", {}, h("b", {}, shortName(names[i], translators)), h("br"), h("bdi", {}, answer.text), ` · ${answer.score.toFixed(4)}`) }))));
  },
};
