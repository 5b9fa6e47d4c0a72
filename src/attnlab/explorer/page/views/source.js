// Source tokens hidden from the attention, dropped, or swapped, and what every target token then thinks.

import { ask, isSaved } from "explorer/ask.js";
import { changesOf, changesPanel, isChanged } from "explorer/changes.js";
import { effectsTable, mapTables } from "explorer/csv.js";
import { h } from "explorer/dom.js";
import { effects, marked } from "explorer/effects.js";
import { heatMap } from "explorer/heat_map.js";
import { say } from "explorer/words.js";

const MODES = ["hide", "drop", "swap"];
const EMPTY = { hide: [], drop: [], swap: [], first: null };

const toggled = (places, place) =>
  (places.includes(place) ? places.filter((each) => each !== place) : [...places, place]);

/** The edits after a click on a place. */
function clicked(edits, mode, place) {
  if (mode !== "swap") return { ...edits, [mode]: toggled(edits[mode], place), first: null };
  if (edits.first === null) return { ...edits, first: place };
  const swap = edits.first === place ? edits.swap : [...edits.swap, [edits.first, place]];
  return { ...edits, swap, first: null };
}

/** Where each token of the edited source comes from: its position before, `<eos>` the last one. */
export function origins(length, { drop, swap }) {
  const places = [...Array(length).keys()];
  for (const [one, other] of swap) [places[one], places[other]] = [places[other], places[one]];
  return places.filter((_, position) => !drop.includes(position));
}

export const source = {
  name: "source",
  kind: "translation",

  async load(state, base) {
    const edits = { ...EMPTY, ...state.edits };
    const { drop, swap } = edits;
    // The attention counts the tokens that are left.
    const at = origins(base.source.length, edits);
    const hide = edits.hide.map((place) => at.indexOf(place)).filter((place) => place >= 0);
    const changes = base.attention === null ? {} : changesOf(state);
    const same = { model: state.model, text: state.text, intervene: { ...changes, hide }, edit: { drop, swap } };
    const [after, free] = await Promise.all([ask(["score", { ...same, target: base.ids }]), ask(["translate", same])]);
    return { base, after, free, edits };
  },

  draw(state, { base, after, free, edits }, update) {
    const mode = base.attention === null && state.mode === "hide" ? "drop" : state.mode;
    const eos = base.source.length - 1;
    const click = (place) => update((now) => ({ edits: clicked({ ...EMPTY, ...now.edits }, mode, place) }));
    const at = origins(base.source.length, { drop: [], swap: edits.swap }); // the token that stands at each place now
    const reset = h("button", { type: "button", onclick: () => update({ edits: null, changes: null }),
      disabled: isSaved || !(edits.hide.length || edits.drop.length || edits.swap.length || isChanged(state)) }, say("reset"));
    return h("div", {},
      h("section", { class: "panel" },
        h("fieldset", { class: "choices" }, h("legend", {}, say("changeSource")), MODES.map((each) =>
          h("label", {}, h("input", { type: "radio", name: "mode", checked: each === mode,
            disabled: isSaved || (each === "hide" && base.attention === null), onchange: () => update({ mode: each }) }), say(each)))),
        h("p", { class: "quiet" }, say(`${mode}Hint`)),
        h("div", { class: "tokens", role: "group", "aria-label": say("source") }, at.map((from, place) => {
          const hidden = edits.hide.includes(from);
          const dropped = edits.drop.includes(place);
          const pressed = mode === "hide" ? hidden : mode === "drop" ? dropped : edits.first === place;
          return h("button", { type: "button", "aria-pressed": String(pressed), disabled: isSaved || (place === eos && mode !== "hide"),
            class: [hidden ? "is-hidden" : "", dropped ? "is-dropped" : "", from === place ? "" : "changed"].join(" ").trim(),
            onclick: () => click(mode === "hide" ? from : place) }, h("bdi", {}, base.source[from]));
        })),
        base.attention ? [h("hr", {}), changesPanel("attentionOfAllSteps", state, update, reset)] : h("div", { class: "controls" }, reset)),
      marked(free, base),
      h("div", { class: "beside" }, heatMap("edited", after), effects(base, after, state, update)));
  },

  tables: (state, { base, after }) => [effectsTable(base, after), ...mapTables([["target", after]])],
};
