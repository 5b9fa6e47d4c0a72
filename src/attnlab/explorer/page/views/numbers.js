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
const FED = { AttentionalHiddenFeeding: "s̃ₜ₋₁", ExpectedEmbeddingFeeding: "Σ pₜ₋₁(y) e(y)" };
const READOUTS = {
  StateReadout: "rₜ = sₜ",
  PlainReadout: "rₜ = [sₜ; cₜ; yₜ₋₁]",
  TanhReadout: "rₜ = tanh(W [sₜ; cₜ; yₜ₋₁] + b)",
  AttentionalReadout: "s̃ₜ = tanh(W [cₜ; sₜ] + b)",
  MaxoutReadout: "rₜ = maxout(U sₜ + V yₜ₋₁ + C cₜ + b)",
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
    const formulas = formulasOf(models.find((model) => model.name === state.model));
    const emphasised = Boolean(heads[0].emphasis);
    const columns = [`${say("energy")} eᵢ`, say("mask"), emphasised && say("emphasis"), `${say("weight")} αᵢ`, `${say("keys")} kᵢ`, `${say("values")} vᵢ`].filter(Boolean);
    const go = (to) => update({ step: Math.min(Math.max(to, 0), target.length - 1) });
    return h("div", {},
      h("section", { class: "panel" },
        h("div", { class: "steps", role: "group", "aria-label": say("chooseStep") },
          h("button", { type: "button", "aria-label": say("previous"), disabled: step === 0, onclick: () => go(step - 1) }, "←"),
          target.map((token, i) => h("button", { type: "button", "aria-pressed": String(i === step), onclick: () => go(i) }, h("bdi", {}, token))),
          h("button", { type: "button", "aria-label": say("next"), disabled: step === target.length - 1, onclick: () => go(step + 1) }, "→")),
        h("p", { class: "formula" }, formulas.map((each) => h("code", {}, each)))),
      heads.map((head, i) => h("section", { "data-key": `head-${i}` },
        heads.length > 1 && h("h2", {}, say("head", i + 1)),
        h("dl", { class: "vectors" }, h("dt", {}, `${say("query")} s`), h("dd", {}, vector(head.query[step]))),
        h("div", { class: "scroll" }, h("table", { class: "numbers" },
          h("thead", {}, h("tr", {}, h("td", {}), columns.map((name) => h("th", { scope: "col" }, name)))),
          h("tbody", {}, source.map((token, j) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, token)),
            h("td", {}, head.energies[step][j].toFixed(4)), h("td", {}, head.visible[step][j] ? "1" : "−∞"),
            emphasised && h("td", {}, head.emphasis[step][j].toFixed(4)),
            h("td", { style: { background: colour(head.weights[step][j]), color: ink(head.weights[step][j]) } }, head.weights[step][j].toFixed(4)),
            h("td", { class: "text" }, vector(head.keys[j])), h("td", { class: "text" }, vector(head.values[j]))))))),
        h("dl", { class: "vectors" }, h("dt", {}, `${say("context")} cₜ`), h("dd", {}, vector(head.context[step]))))),
      h("dl", { class: "vectors" }, h("dt", {}, `${say("output")} P(yₜ)`), h("dd", {},
        likeliest[step].map(([token, , probability]) => h("span", { class: "output" }, h("bdi", {}, token), ` ${probability.toFixed(4)}`)))));
  },
};

/** What a step computes, in its order, for a model as the server describes it. */
function formulasOf({ score, decoder, normaliser, scope, renormalise, readout, fed, context_in_cell: inCell, context_in_readout: inReadout }) {
  const [query, context] = QUERIES[decoder] ?? ["s", "c"];
  const inputs = ["yₜ₋₁", FED[fed], inCell && context].filter(Boolean);
  const output = inReadout ? READOUTS[readout] : READOUTS[readout]?.replace(/ cₜ;| \+ C cₜ/, "");
  const steps = [
    `sₜ = f(sₜ₋₁, ${inputs.length > 1 ? `[${inputs.join("; ")}]` : inputs[0]})`, query, SCORES[score], `α = ${normaliser.toLowerCase()}(e)`,
    scope === "LocalP" && "αᵢ ← αᵢ exp(−(i − pₜ)² / 2σ²)", renormalise && "α ← α / Σ αᵢ", "cₜ = Σ αᵢ vᵢ",
  ];
  const last = [output, `P(yₜ) = softmax(W ${output?.split(" ")[0] ?? "rₜ"})`];
  // A query from before the step comes first, and the state after it behind the context.
  return [...(decoder === "AttendThenStep" ? [...steps.slice(1), steps[0]] : steps), ...last].filter(Boolean);
}

/** A vector in full, or its first numbers with the others folded behind them. */
function vector(values) {
  const text = (part) => part.map((value) => value.toFixed(3)).join("  ");
  if (values.length <= FOLDED + 2) return text(values);
  return h("details", {}, h("summary", {}, `${text(values.slice(0, FOLDED))}  … ${values.length}`), text(values.slice(FOLDED)));
}
