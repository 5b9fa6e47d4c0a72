// One step with its numbers, beside the formulas in the notation of the papers.

import { ask } from "explorer/ask.js";
import { h } from "explorer/dom.js";
import { level } from "explorer/colours.js";
import { say } from "explorer/words.js";

const FOLDED = 6; // numbers of a vector that are shown at first

// What a score makes of h once a sentence, and the energy of it (k) and the query s. A coverage is added to k.
const KEYS = {
  General: (h) => `W ${h}`, ScaledLuong: (h) => `W ${h}`, Concat: (h) => `W₂ ${h}`, Bahdanau: (h) => `U ${h}`,
  NormedBahdanau: (h) => `U ${h} + b`, Location: () => "i", Uniform: () => "i",
};
const sum = (k) => (k.includes("+") ? `(${k})` : k);
const SCORES = {
  Dot: (s, k) => `eᵢ = ${s} · ${sum(k)}`,
  ScaledDot: (s, k) => `eᵢ = ${s} · ${sum(k)} / √d`,
  General: (s, k) => `eᵢ = ${s} · ${sum(k)}`,
  ScaledLuong: (s, k) => `eᵢ = g (${s} · ${sum(k)})`,
  Concat: (s, k) => `eᵢ = v · tanh(W₁ ${s} + ${k}), W = [W₁ W₂]`,
  Bahdanau: (s, k, b) => `eᵢ = v · tanh(W ${s}${b} + ${k})`,
  NormedBahdanau: (s, k) => `eᵢ = g (v / |v|) · tanh(W ${s} + ${k})`,
  Cosine: (s, k) => `eᵢ = g cos(${s}, ${k})`,
  Location: (s) => `eᵢ = (W ${s})ᵢ`, Uniform: () => "eᵢ = 0",
};
const FED = { AttentionalHiddenFeeding: "s̃ₜ₋₁", ExpectedEmbeddingFeeding: "Σ pₜ₋₁(y) e(y)", SoftmaxOutputFeeding: "pₜ₋₁" };
const READOUTS = {
  StateReadout: "rₜ = sₜ",
  PlainReadout: "rₜ = [sₜ; cₜ; yₜ₋₁]",
  TanhReadout: "rₜ = tanh(W [sₜ; cₜ; yₜ₋₁] + b)",
  AttentionalReadout: "s̃ₜ = tanh(W [cₜ; sₜ] + b)",
  MaxoutReadout: "rₜ = maxout(U sₜ + V yₜ₋₁ + C cₜ + b)",
};
const QUERIES = { AttendThenStep: ["s = sₜ₋₁", "cₜ"], StepThenAttend: ["s = sₜ", "cₜ₋₁"], Conditional: ["s = s′ₜ"] };

export const numbers = {
  name: "numbers",
  kind: "translation",

  load: (state, base) => base.attention === null ? { base }
    : ask(["step_numbers", { model: state.model, text: state.text, target: base.ids }]),

  draw(state, answer, update, models) {
    if (!answer.heads) return h("p", { class: "quiet" }, say("noAttention"));
    const { target, source, heads, likeliest } = answer;
    const step = Math.min(state.step ?? 0, target.length - 1);
    const { formulas, ...names } = formulasOf(models.find((model) => model.name === state.model));
    const more = ["coverage", "emphasis"].filter((name) => heads[0][name]);
    const columns = [`${say("energy")} eᵢ`, say("mask"), ...more.map((name) => say(name)), `${say("weight")} αᵢ`,
      `${say("keys")} ${names.key}`, `${say("values")} ${names.value}`];
    const go = (to) => update({ step: Math.min(Math.max(to, 0), target.length - 1) });
    return h("div", {},
      h("section", { class: "panel" },
        h("div", { class: "steps", role: "group", "aria-label": say("chooseStep") },
          h("button", { type: "button", "aria-label": say("previous"), disabled: step === 0, onclick: () => go(step - 1) }, "←"),
          target.map((token, i) => h("button", { type: "button", "aria-pressed": String(i === step), onclick: () => go(i) }, h("bdi", {}, token))),
          h("button", { type: "button", "aria-label": say("next"), disabled: step === target.length - 1, onclick: () => go(step + 1) }, "→")),
        h("p", { class: "formula" }, formulas.map((each) => h("code", {}, each.split(/_(.)/).map((part, i) => (i % 2 ? h("sub", {}, part) : part)))))),
      heads.map((head, i) => h("section", { "data-key": `head-${i}` },
        heads.length > 1 && h("h2", {}, say("head", i + 1)),
        h("dl", { class: "vectors" }, h("dt", {}, `${say("query")} ${names.query}`), h("dd", {}, vector(head.query[step])),
          head.projected_query && [h("dt", {}, `${say("query")} q′`), h("dd", {}, vector(head.projected_query[step]))],
          head.coverage_weight && [h("dt", {}, "w"), h("dd", {}, vector(head.coverage_weight))],
          head.g !== undefined && [h("dt", {}, "g"), h("dd", {}, head.g.toFixed(4))]),
        h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": say("view.numbers") }, h("table", { class: "numbers" },
          h("thead", {}, h("tr", {}, h("td", {}), columns.map((name) => h("th", { scope: "col" }, name)))),
          h("tbody", {}, source.map((token, j) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, token)),
            h("td", {}, head.energies[step][j].toFixed(4)), h("td", {}, head.visible[step][j] ? "1" : "−∞"),
            more.map((name) => h("td", {}, head[name][step][j].toFixed(4))),
            h("td", { class: `heat-${level(head.weights[step][j])}` }, head.weights[step][j].toFixed(4)),
            h("td", { class: "text" }, vector(head.keys[j])), h("td", { class: "text" }, vector(head.values[j]))))))),
        h("dl", { class: "vectors" }, h("dt", {}, `${say("context")} ${names.context}`), h("dd", {}, vector(head.context[step]))))),
      h("dl", { class: "vectors" }, h("dt", {}, `${say("output")} P(yₜ)`), h("dd", {},
        likeliest[step].map(([token, , probability]) => h("span", { class: "output" }, h("bdi", {}, token), ` ${probability.toFixed(4)}`)))));
  },
};

/** What a step computes, in its order, for a model as the server describes it; and what its numbers are called. */
function formulasOf({ score, projected, biased, coverage, multi_head: many, decoder, normaliser, scope, renormalise, readout, fed,
  context_in_cell: inCell, context_in_readout: inReadout }) {
  const [query, context] = QUERIES[decoder] ?? ["s", "c"];
  const stepsTwice = decoder === "Conditional", inputs = ["yₜ₋₁", FED[fed], inCell && context].filter(Boolean);
  const output = inReadout ? READOUTS[readout] : READOUTS[readout]?.replace(/ cₜ;| \+ C cₜ/, "");
  const own = many ? { query: "q", key: "kᵢ", value: "vᵢ", context: "cⁿ" } : { query: "s", key: "hᵢ", value: "hᵢ", context: "cₜ" };
  const [s, of] = projected ? ["q′", "k′ᵢ"] : [own.query, own.key];
  const key = (KEYS[score] ?? ((h) => h))(of) + (score === "Bahdanau" && biased ? " + b₂" : "");
  const steps = [
    `${stepsTwice ? "s′ₜ" : "sₜ"} = f(sₜ₋₁, ${inputs.length > 1 ? `[${inputs.join("; ")}]` : inputs[0]})`, query,
    many && "q = W_Qⁿ s, kᵢ = W_Kⁿ hᵢ, vᵢ = W_Vⁿ hᵢ", projected && `q′ = W_q ${own.query}, k′ᵢ = W_k ${own.key}`,
    coverage && "κᵢ = α₁ᵢ + … + αₜ₋₁ᵢ", SCORES[score]?.(s, key + (coverage ? " + w κᵢ" : ""), biased ? " + b₁" : ""), `α = ${normaliser.toLowerCase()}(e)`,
    scope === "LocalP" && "αᵢ ← αᵢ exp(−(i − pₜ)² / 2σ²)", renormalise && "α ← α / Σ αᵢ", `${own.context} = Σ αᵢ ${own.value}`,
    many && "cₜ = W_O [c¹; c²; …]",
  ];
  const last = [stepsTwice && "sₜ = f′(s′ₜ, cₜ)", output, `P(yₜ) = softmax(W ${output?.split(" ")[0] ?? "rₜ"})`];
  // A query from before the step comes first, and the state after it behind the context.
  const formulas = [...(decoder === "AttendThenStep" ? [...steps.slice(1), steps[0]] : steps), ...last].filter(Boolean);
  return { ...own, key, formulas };
}

/** A vector in full, or its first numbers with the others folded behind them. */
function vector(values) {
  const text = (part) => part.map((value) => value.toFixed(3)).join("  ");
  if (values.length <= FOLDED + 2) return text(values);
  return h("details", {}, h("summary", {}, `${text(values.slice(0, FOLDED))}  … ${values.length}`), text(values.slice(FOLDED)));
}
