// The weights of one step by hand: drag them, make them uniform, or ask for those that make a token likeliest.

import { ask, isSaved } from "explorer/ask.js";
import { h } from "explorer/dom.js";
import { effects, marked } from "explorer/effects.js";
import { say } from "explorer/words.js";

const digits = (weight) => Math.round(weight * 1e6) / 1e6;

/** The weights with one of them changed; the others keep their proportions, and all sum to 1. */
export function withWeight(weights, place, weight) {
  const others = weights.reduce((sum, each, i) => (i === place ? sum : sum + each), 0);
  const left = 1 - weight;
  return weights.map((each, i) => digits(i === place ? weight : others > 0 ? each * left / others : left / (weights.length - 1)));
}

const question = (state, base, intervene) => ({ model: state.model, text: state.text, target: base.ids, intervene });

export const weights = {
  name: "weights",
  kind: "translation",

  async load(state, base) {
    if (!state.weights || base.attention === null) return { base, after: base, free: base };
    const intervene = { weights: state.weights };
    const [after, free] = await Promise.all([
      ask(["score", question(state, base, intervene)]),
      ask(["translate", { model: state.model, text: state.text, intervene }]),
    ]);
    return { base, after, free };
  },

  draw(state, { base, after, free }, update) {
    if (base.attention === null) return h("p", { class: "quiet" }, say("noAttention"));
    const step = Math.min(state.step ?? 0, base.target.length - 1);
    const row = state.weights?.[step] ?? after.attention[step];
    const put = (wanted) => update((now) => ({ step, weights: { ...now.weights, [step]: wanted } }));
    const likeliest = async (token) => {
      const found = await ask(["likeliest_weights", { ...question(state, base, { weights: state.weights ?? {} }), step, token }]);
      put(found.weights);
    };
    return h("div", {},
      h("section", { class: "panel" },
        h("div", { class: "steps", role: "group", "aria-label": say("chooseStep") }, base.target.map((token, i) =>
          h("button", { type: "button", "aria-pressed": String(i === step), class: state.weights?.[i] ? "changed" : "",
            onclick: () => update({ step: i }) }, h("bdi", {}, token)))),
        h("p", { class: "quiet" }, say("weightsHint")),
        h("div", { class: "scroll" }, h("div", { class: "sliders" }, row.map((weight, i) => h("label", {},
          h("input", { type: "range", min: 0, max: 1, step: "any", value: weight, disabled: isSaved, style: { "--weight": `${100 * weight}%` },
            "aria-label": `${base.source[i]} ${say("weight")}`, "aria-valuetext": weight.toFixed(3),
            onkeydown: (event) => stepBy(event, weight, (to) => put(withWeight(row, i, to))),
            oninput: (event) => put(withWeight(row, i, Number(event.currentTarget.value))) }),
          h("bdi", { title: `${base.source[i]}: ${weight.toFixed(4)}` }, base.source[i]))))),
        !isSaved && h("div", { class: "controls" },
          h("button", { type: "button", onclick: () => put(row.map(() => digits(1 / row.length))) }, say("uniform")),
          base.likeliest[step].map(([token, id]) => h("button", { type: "button", onclick: () => likeliest(id) }, say("makeLikeliest", token))),
          h("button", { type: "button", disabled: !state.weights, onclick: () => update({ weights: null }) }, say("reset")))),
      marked(free, base),
      effects(base, after, step));
  },
};

/** Arrow keys move a weight by a twentieth, whatever the browser's own step is. */
function stepBy(event, weight, put) {
  const by = { ArrowUp: 0.05, ArrowRight: 0.05, ArrowDown: -0.05, ArrowLeft: -0.05, PageUp: 0.25, PageDown: -0.25 }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  put(Math.min(Math.max(weight + by, 0), 1));
}
