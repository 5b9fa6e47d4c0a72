// The weights of one step by hand: drag them, or make them uniform. And those of all steps: uniform, permuted, or of
// another temperature.

import { ask, isSaved } from "explorer/ask.js";
import { changesOf, changesPanel, digits, headsPanel, isChanged, sliders } from "explorer/changes.js";
import { effectsTable, mapTables } from "explorer/csv.js";
import { h } from "explorer/dom.js";
import { effects, marked } from "explorer/effects.js";
import { stepButtons } from "explorer/step_buttons.js";
import { say } from "explorer/words.js";

const question = (state) =>
  ({ model: state.model, text: state.text, intervene: {
    ...changesOf(state), weights: state.weights ?? {}, ...(state.heads && { heads: state.heads }) } });

export const weights = {
  name: "weights",
  kind: "translation",

  async load(state, base) {
    if (base.attention === null || !(state.weights || isChanged(state))) return { base, after: base, free: base };
    const [after, free] = await Promise.all([
      ask(["score", { ...question(state), target: base.ids }]),
      ask(["translate", question(state)]),
    ]);
    return { base, after, free };
  },

  draw(state, { base, after, free }, update, models) {
    const { heads } = models.find((model) => model.name === state.model);
    if (base.attention === null) return h("p", { class: "quiet" }, say("noAttention"));
    const step = Math.min(state.step ?? 0, base.target.length - 1);
    const row = state.weights?.[step] ?? after.attention[step];
    const put = (wanted, how) => update((now) => ({ step, weights: { ...now.weights, [step]: wanted } }), how);
    return h("div", { class: "beside" },
      h("section", { class: "panel" },
        changesPanel("attentionOfAllSteps", state, update, h("button", { type: "button", disabled: isSaved || !(state.weights || isChanged(state)),
          onclick: () => update({ weights: null, changes: null }) }, say("reset"))),
        heads > 1 && headsPanel(heads, state, update),
        h("hr", {}),
        stepButtons(base.target, step, (each) => update({ step: each }), (each) => Boolean(state.weights?.[each])),
        h("p", { class: "quiet" }, say("weightsHint")),
        sliders(base.source, row, put),
        !isSaved && h("div", { class: "controls" },
          h("button", { type: "button", onclick: () => put(row.map(() => digits(1 / row.length))) }, say("uniformHere")))),
      h("div", {}, marked(free, base), effects(base, after, state, update, step)));
  },

  tables: (state, { base, after }) => base.attention === null ? [] : [effectsTable(base, after), ...mapTables([["target", after]])],
};
