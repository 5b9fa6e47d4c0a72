// Changes of the attention that several views offer: all steps at once, one row by hand, and pads.

import { isSaved } from "explorer/ask.js";
import { h, scrolling } from "explorer/dom.js";
import { label, weightText } from "explorer/labels.js";
import { say } from "explorer/words.js";

const OWN = { kind: null, temperature: 1, seed: 0 };
const KINDS = [null, "uniform", "permuted"];

/** The kind, temperature and seed of an intervention. */
export const changesOf = (state) => ({ ...OWN, ...state.changes });
export const isChanged = (state) => changesOf(state).kind !== null || changesOf(state).temperature !== 1;

/** Uniform or permuted weights and the temperature, at every step, under a heading; `more` stands beside them. */
export function changesPanel(heading, state, update, ...more) {
  const { kind, temperature } = changesOf(state);
  const change = (wanted, how) => update((now) => ({ changes: { ...changesOf(now), ...wanted(now) } }), how);
  return [
    h("fieldset", { class: "choices" }, h("legend", {}, say(heading)), KINDS.map((each) => h("label", {},
      h("input", { type: "radio", name: "kind", checked: kind === each, disabled: isSaved, onchange: () => change(() => ({ kind: each })) }),
      say(each ?? "ownWeights")))),
    h("div", { class: "controls" },
      h("label", {}, h("span", { class: "label" }, say("temperature", temperature.toFixed(2))),
        h("input", { type: "range", min: -2, max: 2, step: 0.05, value: Math.log10(temperature), disabled: isSaved || kind === "uniform",
          "aria-valuetext": temperature.toFixed(2), oninput: (event) => {
            const to = 10 ** Number(event.currentTarget.value);
            change(() => ({ temperature: to }), "gradual");
          } })),
      kind === "permuted" && h("button", { type: "button", disabled: isSaved,
        onclick: () => change((now) => ({ seed: changesOf(now).seed + 1 })) }, say("permuteAgain")),
      more),
  ];
}

/** The heads that a change goes for. */
export function headsPanel(count, state, update) {
  const every = [...Array(count).keys()];
  const chosen = state.heads ?? every;
  const tick = (head) => {
    const now = every.filter((each) => chosen.includes(each) !== (each === head));
    update({ heads: now.length === count ? null : now });
  };
  return h("fieldset", { class: "choices heads" }, h("legend", {}, say("changedHeads")), every.map((head) => h("label", {},
    h("input", { type: "checkbox", checked: chosen.includes(head), onchange: () => tick(head),
      disabled: isSaved || String(chosen) === String(head) }), // one must be left
    say("headNumber", head))));
}

export const digits = (weight) => Math.round(weight * 1e6) / 1e6;

/** The weights with one of them changed; the others keep their proportions, and all sum to 1. */
export function withWeight(weights, place, weight) {
  if (weights.some((each) => each < 0)) return weights.map((each, i) => i === place ? digits(weight) : each); // they need not sum to 1
  const others = weights.reduce((sum, each, i) => (i === place ? sum : sum + each), 0);
  const left = 1 - weight;
  return weights.map((each, i) => digits(i === place ? weight : others > 0 ? each * left / others : left / (weights.length - 1)));
}

/** A bar a token, to drag or move by arrow keys; `put` takes the whole row, and that it comes gradually. */
export function sliders(tokens, row, put) {
  const least = Math.min(0, ...row), most = Math.max(1, ...row); // weights of some models are negative, or above 1
  const bar = (weight, i) => h("label", {},
    h("input", { type: "range", min: least, max: most, step: "any", value: weight, disabled: isSaved, style: { "--weight": `${100 * (weight - least) / (most - least)}%` },
      "aria-label": `${tokens[i]} ${say("weight")}`, "aria-valuetext": weight.toFixed(3),
      onkeydown: (event) => stepBy(event, (to) => put(withWeight(row, i, to), "gradual")),
      oninput: (event) => put(withWeight(row, i, Number(event.currentTarget.value)), "gradual") }),
    h("small", {}, weightText(weight) || "0"),
    h("bdi", { title: `${tokens[i]}: ${weight.toFixed(4)}` }, label(tokens[i])));
  return scrolling(say("weights"), h("div", { class: "sliders" }, row.map(bar)));
}

/** Arrow keys move a weight by a twentieth, whatever the browser's own step is. */
function stepBy(event, put) {
  const by = { ArrowUp: 0.05, ArrowRight: 0.05, ArrowDown: -0.05, ArrowLeft: -0.05, PageUp: 0.25, PageDown: -0.25 }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  // Keys may come faster than pictures: the bar's own value is the newest.
  const bar = event.currentTarget;
  bar.value = Number(bar.value) + by; // stays between its ends
  put(Number(bar.value));
}

/** How many pads stand before and behind the source. */
export const padFields = (edit, update) => [["before", "padsBefore"], ["behind", "padsBehind"]].map(([name, label]) =>
  h("label", {}, h("span", { class: "label" }, say(label)),
    h("input", { type: "number", min: 0, max: 50, value: edit[name], disabled: isSaved,
      oninput: (event) => {
        const count = Math.min(Math.max(Math.round(Number(event.currentTarget.value)) || 0, 0), 50);
        update((now) => ({ pads: { ...edit, ...now.pads, [name]: count } }), "gradual");
      } })));
