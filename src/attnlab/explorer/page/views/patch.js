// Parts of the model's run on another sentence, in place of the sentence's own: weights, keys, values and the first state.

import { ask, isSaved, ServerGone } from "explorer/ask.js";
import { headsPanel } from "explorer/changes.js";
import { effectsTable, mapTables } from "explorer/csv.js";
import { h } from "explorer/dom.js";
import { effects, marked } from "explorer/effects.js";
import { sentenceOf } from "explorer/errors.js";
import { heatMap } from "explorer/heat_map.js";
import { label } from "explorer/labels.js";
import { stepButtons } from "explorer/step_buttons.js";
import { typed } from "explorer/typing.js";
import { say } from "explorer/words.js";

const PARTS = ["weights", "keys", "values", "state"];
const NOTHING = { text: "", weights: false, keys: false, values: false, state: false, steps: "all", places: "all" };
const NO_PAIRS = { here: null, places: {} }; // the source token that waits for its other, and {position here: position there}

const patchOf = (state) => ({ ...NOTHING, ...state.patch });
const pairsOf = (state) => ({ ...NO_PAIRS, ...state.patchPairs });
const stepOf = (state, base) => Math.min(state.step ?? 0, base.target.length - 1);
const isAsLong = (base, other) => base.source.length === other.source.length;

/** Whether keys and values of all tokens are taken, which only a sentence of the same length can give. */
const takesAllPlaces = (patch, base, other) => patch.places === "all" && isAsLong(base, other);

/** The intervention that a person has chosen; without fields where nothing is taken. */
function interventionOf(state, base, other, parts) {
  const patch = patchOf(state);
  const takes = (part) => patch[part] && parts.includes(part);
  const change = {};
  if (takes("weights") && isAsLong(base, other)) {
    const steps = other.attention.map((_, step) => step).filter((step) => patch.steps === "all" || step === stepOf(state, base));
    if (steps.length > 0) {
      change.weights = Object.fromEntries(steps.map((step) => [step, other.attention[step]]));
      if (state.heads) change.heads = state.heads;
    }
  }

  const places = takesAllPlaces(patch, base, other) ? "all" : pairsOf(state).places;
  const taken = {};
  for (const part of ["keys", "values"]) if (takes(part) && Object.keys(places).length > 0) taken[part] = places;
  if (takes("state")) taken.state = true;
  if (Object.keys(taken).length > 0) change.patch = { text: patch.text, ...taken };
  return change;
}

export const patch = {
  name: "patch",
  kind: "translation",

  async load(state, base, models) {
    const { patches: parts, heads } = models.find((model) => model.name === state.model);
    const pairs = await ask(["pairs", { model: state.model }]);
    const unchanged = { base, parts, heads, pairs, other: null, after: base, free: base };
    const { text } = patchOf(state);
    if (!text.trim()) return unchanged;
    try {
      const other = await ask(["translate", { model: state.model, text }]);
      const intervene = interventionOf(state, base, other, parts);
      if (Object.keys(intervene).length === 0) return { ...unchanged, other };
      const same = { model: state.model, text: state.text, intervene };
      const [after, free] = await Promise.all([ask(["score", { ...same, target: base.ids }]), ask(["translate", same])]);
      return { ...unchanged, other, after, free };
    } catch (error) {
      if (error instanceof ServerGone) throw error;
      return { ...unchanged, refused: sentenceOf(error) }; // the box of the other sentence must stay
    }
  },

  draw(state, answer, update) {
    const { base, other, after, free, refused } = answer;
    const maps = other !== null && base.attention !== null;
    return h("div", {},
      h("div", { class: "beside" },
        h("section", { class: "panel patch" },
          otherSentence(state, answer, update),
          refused && h("p", { class: "error", role: "alert" }, refused),
          other && choices(state, answer, update)),
        h("div", {}, marked(free, base), effects(base, after, state, update))),
      maps && h("div", { class: "maps" },
        heatMap("patched", after, { abreast: 2, title: say("patchedRun") }),
        heatMap("other", other, { abreast: 2, title: say("otherRun") })));
  },

  tables: (state, { base, other, after }) => [effectsTable(base, after), ...mapTables([["target", after], ["other", other]])],
};

/** The box of the other sentence, and test sentences to choose from. */
function otherSentence(state, { pairs, other }, update) {
  const take = (text, how) => update((now) => ({ patch: { ...patchOf(now), text }, patchPairs: null }), how);
  const { text } = patchOf(state);
  return [
    h("label", {}, h("span", { class: "label" }, say("otherSentence")),
      h("input", { type: "text", class: "wide", value: text, placeholder: say("placeholder"), spellcheck: "false", readonly: isSaved,
        oninput: typed((written) => take(written, "gradual")) })),
    pairs.length > 0 && h("label", {}, h("span", { class: "label" }, say("pairs")),
      h("select", { class: "wide", disabled: isSaved, onchange: ({ currentTarget: { value } }) => value && take(pairs[value].source) },
        h("option", { value: "", selected: !pairs.some(({ source }) => source === text) }, "…"),
        pairs.map(({ source }, i) => h("option", { value: i, selected: source === text }, source)))),
    other && h("p", { class: "quiet" }, `${say("otherTranslation")} `, h("bdi", {}, other.text)),
    h("p", { class: "quiet" }, say("patchHint")),
  ];
}

/** What is taken from the other run, and where it goes. */
function choices(state, { base, other, parts, heads }, update) {
  const patch = patchOf(state);
  const change = (wanted) => update((now) => ({ patch: { ...patchOf(now), ...wanted } }));
  const fits = isAsLong(base, other);
  const offered = (part) => parts.includes(part) && (part !== "weights" || fits);
  const takes = (part) => offered(part) && patch[part];
  const tick = (part) => h("label", {}, h("input", { type: "checkbox", checked: takes(part), disabled: isSaved || !offered(part),
    onchange: ({ currentTarget: { checked } }) => change({ [part]: checked }) }), say(`patch.${part}`));
  const isEmpty = !state.patchPairs && !PARTS.some((part) => patch[part]);
  return [
    h("fieldset", { class: "choices" }, h("legend", {}, say("takenOver")), PARTS.map(tick)),
    missing(parts).map((reason) => h("p", { class: "quiet" }, say(reason))),
    !fits && base.attention && h("p", {}, say("patchLengths", base.source.length, other.source.length)),
    takes("weights") && weightsOf(state, { base, other, heads }, change, update),
    (takes("keys") || takes("values")) && placesOf(state, { base, other }, change, update),
    h("div", { class: "controls" }, h("button", { type: "button", disabled: isSaved || isEmpty,
      onclick: () => update((now) => ({ patch: { ...NOTHING, text: patchOf(now).text }, patchPairs: null })) }, say("reset"))),
  ];
}

/** Why this model cannot take some part. */
function missing(parts) {
  if (!parts.includes("weights")) return ["onlyState"];
  const reasons = [];
  if (!parts.includes("keys")) reasons.push("noKeys");
  if (!parts.includes("state")) reasons.push("noFirstState");
  return reasons;
}

/** A choice of two. */
const either = (legend, name, all, chosen, choose) => h("fieldset", { class: "choices" }, h("legend", {}, say(legend)),
  all.map(({ value, words, disabled }) => h("label", {},
    h("input", { type: "radio", name, checked: value === chosen, disabled: isSaved || disabled, onchange: () => choose(value) }), say(words))));

/** The steps and heads whose weights are the other run's. */
function weightsOf(state, { base, other, heads }, change, update) {
  const { steps } = patchOf(state);
  const written = other.target.length;
  const step = stepOf(state, base);
  const isBehind = steps === "all" ? written < base.target.length : step >= written;
  return [
    either("patchSteps", "steps", [{ value: "all", words: "allSteps" }, { value: "one", words: "oneStep" }], steps, (value) => change({ steps: value })),
    steps === "one" && stepButtons(base.target, step, (each) => update({ step: each })),
    isBehind && h("p", { class: "quiet" }, say("fewSteps", written)),
    heads > 1 && [headsPanel(heads, state, update), h("p", { class: "quiet" }, say("meanOfHeads"))],
  ];
}

/** The tokens that get keys or values, and those of the other sentence that give them. */
function placesOf(state, { base, other }, change, update) {
  const isAll = takesAllPlaces(patchOf(state), base, other);
  const all = [{ value: "all", words: "allTokens", disabled: !isAsLong(base, other) }, { value: "some", words: "someTokens" }];
  return [
    either("patchPlaces", "places", all, isAll ? "all" : "some", (value) => change({ places: value })),
    !isAll && tokenPairs(pairsOf(state), { base, other }, (wanted) => update((now) => ({ patchPairs: wanted(pairsOf(now)) }))),
  ];
}

function tokenPairs({ here, places }, { base, other }, change) {
  const waitFor = (place) => change((now) => ({ ...now, here: now.here === place ? null : place }));
  const pair = (place) => change((now) => ({ here: null, places: { ...now.places, [now.here]: place } }));
  const part = (place) => change((now) => {
    const { [place]: _, ...left } = now.places;
    return { here: null, places: left };
  });
  const row = (name, tokens, { pressed, used, disabled, choose }) => h("div", { class: "tokens", role: "group", "aria-label": name },
    tokens.map((token, place) => h("button", { type: "button", "aria-pressed": String(pressed(place)), disabled: isSaved || disabled,
      class: used(place) ? "changed" : "", onclick: () => choose(place) }, h("bdi", {}, label(token)))));
  const given = Object.values(places);
  const numbered = (tokens, place) => [h("bdi", {}, label(tokens[place])), h("sub", {}, place)];
  return [
    h("p", { class: "quiet" }, say("pairsHint")),
    h("span", { class: "label" }, say("source")),
    row(say("source"), base.source, { pressed: (place) => place === here, used: (place) => place in places, disabled: false, choose: waitFor }),
    h("span", { class: "label" }, say("otherSentence")),
    row(say("otherSentence"), other.source, { pressed: () => false, used: (place) => given.includes(place), disabled: here === null, choose: pair }),
    given.length > 0 && h("ul", { class: "pairs" }, Object.entries(places).map(([place, there]) => h("li", {},
      h("button", { type: "button", disabled: isSaved, onclick: () => part(place),
        "aria-label": say("unpair", label(base.source[place]), label(other.source[there])) },
      numbered(base.source, place), " ← ", numbered(other.source, there), " ✕")))),
  ];
}
