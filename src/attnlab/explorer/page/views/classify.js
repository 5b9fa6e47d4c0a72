// A classified sentence: its tokens coloured by their weights, the probabilities, and what changes of the attention do.

import { ask, isSaved } from "explorer/ask.js";
import { h } from "explorer/dom.js";
import { colour, ink } from "explorer/colours.js";
import { say } from "explorer/words.js";

const START = { kind: null, hide: [], temperature: 1, seed: 0 };
const KINDS = [null, "uniform", "permuted"];

export const classify = {
  name: "classify",
  kind: "classification",

  async load(state) {
    const same = { model: state.model, text: state.text };
    const changes = { ...START, ...state.changes };
    const [own, after] = await Promise.all([ask(["classify", same]), ask(["classify", { ...same, intervene: changes }])]);
    return { own, after, changes };
  },

  draw(state, { own, after, changes }, update) {
    const change = (more) => update((now) => {
      const old = { ...START, ...now.changes };
      return { changes: { ...old, ...(typeof more === "function" ? more(old) : more) } };
    });
    const hide = (place) => change(({ hide: hidden }) => ({ hide: hidden.includes(place) ? hidden.filter((each) => each !== place) : [...hidden, place] }));
    const changed = JSON.stringify(changes) !== JSON.stringify(START);
    return h("div", {},
      h("section", { class: "panel" },
        h("fieldset", { class: "choices" }, h("legend", {}, say("attention")), KINDS.map((kind) => h("label", {},
          h("input", { type: "radio", name: "kind", checked: changes.kind === kind, disabled: isSaved, onchange: () => change({ kind }) }), say(kind ?? "ownWeights")))),
        h("div", { class: "controls" },
          h("label", {}, h("span", { class: "label" }, say("temperature", changes.temperature.toFixed(2))),
            h("input", { type: "range", min: -2, max: 2, step: 0.05, value: Math.log10(changes.temperature), disabled: isSaved || changes.kind === "uniform",
              oninput: (event) => change({ temperature: 10 ** Number(event.currentTarget.value) }) })),
          changes.kind === "permuted" && h("button", { type: "button", disabled: isSaved, onclick: () => change(({ seed }) => ({ seed: seed + 1 })) }, say("permuteAgain")),
          h("button", { type: "button", disabled: !changed || isSaved, onclick: () => update({ changes: null }) }, say("reset"))),
        h("p", { class: "quiet" }, say("classifyHint"))),
      sentence("own", own, say("ownWeights"), null),
      sentence("changed", after, say("newWeights"), changes.hide, hide),
      h("div", { class: "scroll" }, h("table", { class: "effects classes" }, h("caption", {}, say("classes")),
        h("thead", {}, h("tr", {}, ["class", "before", "after"].map((name) => h("th", { scope: "col" }, say(name))), h("td", {}))),
        h("tbody", {}, Object.keys(own.probabilities).map((name) => h("tr", { class: name === after.label ? "selected" : "" },
          h("th", { scope: "row" }, h("bdi", {}, name)), h("td", {}, own.probabilities[name].toFixed(5)), h("td", {}, after.probabilities[name].toFixed(5)),
          h("td", { class: "change", "aria-hidden": "true" }, h("span", { class: "bar" }, h("i", { style: { width: `${100 * after.probabilities[name]}%` } })))))))));
  },
};

/** The tokens as buttons in the colours of their weights; a click hides one from the attention. */
function sentence(key, { source, attention }, title, hidden, onhide) {
  const most = Math.max(...attention, 1e-9);
  return h("figure", { class: "map", "data-key": key }, h("figcaption", {}, title),
    h("div", { class: "tokens coloured", role: "group", "aria-label": title }, source.map((token, i) => {
      const shade = attention[i] / most;
      const properties = { style: { background: colour(shade), color: ink(shade) }, title: `${token}: ${attention[i].toFixed(5)}`,
        "data-weight": attention[i].toFixed(6), "aria-label": `${token} ${attention[i].toFixed(3)}` };
      const content = [h("bdi", {}, token), h("small", {}, attention[i].toFixed(2))];
      return hidden === null ? h("span", { ...properties, role: "img" }, content)
        : h("button", { ...properties, type: "button", disabled: isSaved, class: hidden.includes(i) ? "is-hidden" : "",
          "aria-pressed": String(hidden.includes(i)), onclick: () => onhide(i) }, content);
    })));
}
