// One step with its numbers, beside the formulas in the notation of the papers.

import { ask } from "explorer/ask.js";
import { h } from "explorer/dom.js";
import { colour, ink } from "explorer/colours.js";
import { say } from "explorer/words.js";

const FOLDED = 6; // numbers of a vector that are shown at first

const SCORES = {
  Dot: "eᵢ = s · hᵢ",
  ScaledDot: "eᵢ = s · hᵢ / √d",
  General: "eᵢ = s · W hᵢ",
  ScaledLuong: "eᵢ = g (s · W hᵢ)",
  Concat: "eᵢ = v · tanh(W [s; hᵢ])",
  Bahdanau: "eᵢ = v · tanh(W s + U hᵢ)",
  NormedBahdanau: "eᵢ = g (v / |v|) · tanh(W s + U hᵢ + b)",
  Cosine: "eᵢ = g cos(s, hᵢ)",
  Location: "e = W s",
};
const QUERIES = { AttendThenStep: ["s = sₜ₋₁", "cₜ"], StepThenAttend: ["s = sₜ", "cₜ₋₁"] };

export const numbers = {
  name: "numbers",
  kind: "translation",

  load: (state, base) => base.attention === null ? { base }
    : ask(["step_numbers", { model: state.model, text: state.text, target: base.ids }]),

  draw(state, answer, update, models) {
    if (!answer.heads) return h("p", { class: "quiet" }, say("noAttention"));
    const { target, source, heads, likeliest } = answer;
    const step = Math.min(state.step ?? 0, target.length - 1);
    const { score, decoder, normaliser, context_in_cell: inCell } = models.find((model) => model.name === state.model);
    const [query, context] = QUERIES[decoder] ?? ["s", "c"];
    const recurrence = `sₜ = f(sₜ₋₁, ${inCell ? `[yₜ₋₁; ${context}]` : "yₜ₋₁"})`;
    const go = (to) => update({ step: Math.min(Math.max(to, 0), target.length - 1) });
    return h("div", {},
      h("section", { class: "panel" },
        h("div", { class: "steps", role: "group", "aria-label": say("chooseStep") },
          h("button", { type: "button", "aria-label": say("previous"), disabled: step === 0, onclick: () => go(step - 1) }, "←"),
          target.map((token, i) => h("button", { type: "button", "aria-pressed": String(i === step), onclick: () => go(i) }, h("bdi", {}, token))),
          h("button", { type: "button", "aria-label": say("next"), disabled: step === target.length - 1, onclick: () => go(step + 1) }, "→")),
        h("p", { class: "formula" }, [recurrence, query, SCORES[score], `α = ${normaliser}(e)`, "cₜ = Σ αᵢ vᵢ"].filter(Boolean).map((each) => h("code", {}, each)))),
      heads.map((head, i) => h("section", { "data-key": `head-${i}` },
        heads.length > 1 && h("h2", {}, say("head", i + 1)),
        h("dl", { class: "vectors" }, h("dt", {}, `${say("query")} s`), h("dd", {}, vector(head.query[step]))),
        h("div", { class: "scroll" }, h("table", { class: "numbers" },
          h("thead", {}, h("tr", {}, h("td", {}), [`${say("energy")} eᵢ`, say("mask"), `${say("weight")} αᵢ`, `${say("keys")} kᵢ`, `${say("values")} vᵢ`].map((name) => h("th", { scope: "col" }, name)))),
          h("tbody", {}, source.map((token, j) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, token)),
            h("td", {}, head.energies[step][j].toFixed(4)), h("td", {}, head.visible[step][j] ? "1" : "−∞"),
            h("td", { style: { background: colour(head.weights[step][j]), color: ink(head.weights[step][j]) } }, head.weights[step][j].toFixed(4)),
            h("td", { class: "text" }, vector(head.keys[j])), h("td", { class: "text" }, vector(head.values[j]))))))),
        h("dl", { class: "vectors" }, h("dt", {}, `${say("context")} cₜ`), h("dd", {}, vector(head.context[step]))))),
      h("dl", { class: "vectors" }, h("dt", {}, `${say("output")} P(yₜ)`), h("dd", {},
        likeliest[step].map(([token, , probability]) => h("span", { class: "output" }, h("bdi", {}, token), ` ${probability.toFixed(4)}`)))));
  },
};

/** A vector in full, or its first numbers with the others folded behind them. */
function vector(values) {
  const text = (part) => part.map((value) => value.toFixed(3)).join("  ");
  if (values.length <= FOLDED + 2) return text(values);
  return h("details", {}, h("summary", {}, `${text(values.slice(0, FOLDED))}  … ${values.length}`), text(values.slice(FOLDED)));
}
