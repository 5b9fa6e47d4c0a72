// A classified sentence: its tokens coloured by their weights, the probabilities, and what changes of the attention do.

import { ask, isSaved } from "explorer/ask.js";
import { changesOf, changesPanel, isChanged, padFields, sliders } from "explorer/changes.js";
import { h, scrolling } from "explorer/dom.js";
import { level } from "explorer/colours.js";
import { label } from "explorer/labels.js";
import { say } from "explorer/words.js";

const NO_PADS = { before: 0, behind: 0 };

export const classify = {
  name: "classify",
  kind: "classification",

  async load(state, base, models) {
    const same = { model: state.model, text: state.text };
    const { masks_pads: isMasked } = models.find((model) => model.name === state.model);
    const { mask, ...edit } = { ...NO_PADS, mask: isMasked, ...state.pads };
    const hide = state.edits?.hide ?? [];
    const intervene = { ...changesOf(state), hide, weights: state.weights ?? {}, mask_pads: mask };
    const [own, after] = await Promise.all([ask(["classify", same]), ask(["classify", { ...same, intervene, edit }])]);
    return { own, after, hide, pads: { ...edit, mask } };
  },

  draw(state, { own, after, hide: hidden, pads }, update) {
    // Weights by hand take the place of all other changes, so that any other change lets go of them.
    const change = (wanted, how) => update((now) => ({ ...wanted(now), weights: null }), how);
    const hide = (place) => change(({ edits }) => {
      const old = edits?.hide ?? [];
      return { edits: { ...edits, hide: old.includes(place) ? old.filter((each) => each !== place) : [...old, place] } };
    });
    const row = state.weights?.[0] ?? after.attention.slice(pads.before, pads.before + own.source.length);
    const changed = isChanged(state) || state.weights || state.edits || state.pads;
    return h("div", { class: "beside" },
      h("section", { class: "panel" },
        changesPanel("attention", state, change, padFields(pads, change),
          h("label", { class: "check" }, h("input", { type: "checkbox", checked: pads.mask, disabled: isSaved,
            onchange: ({ currentTarget: { checked } }) => change((now) => ({ pads: { ...pads, ...now.pads, mask: checked } })) }), say("maskPads")),
          h("button", { type: "button", disabled: !changed || isSaved,
            onclick: () => update({ changes: null, weights: null, edits: null, pads: null }) }, say("reset"))),
        h("hr", {}),
        h("p", { class: "quiet" }, say("weightsByHand")),
        sliders(own.source, row, (wanted, how) => update({ weights: { 0: wanted } }, how))),
      h("div", {}, colouredSentence("own", own, say("ownWeights")),
      h("p", { class: "quiet" }, say("classifyHint")),
      colouredSentence("changed", after, say("newWeights"), hidden, hide, pads.before, own.source.length),
      scrolling(say("classes"), h("table", { class: "effects classes" }, h("caption", {}, say("classes")),
        h("thead", {}, h("tr", {}, ["class", "before", "after"].map((name) => h("th", { scope: "col" }, say(name))), h("td", {}))),
        h("tbody", {}, Object.keys(own.probabilities).map((name) => h("tr", { class: name === after.label ? "selected" : "" },
          h("th", { scope: "row" }, h("bdi", {}, name)), h("td", {}, own.probabilities[name].toFixed(5)), h("td", {}, after.probabilities[name].toFixed(5)),
          h("td", { class: "change", "aria-hidden": "true" }, h("span", { class: "bar" }, h("i", { style: { width: `${100 * after.probabilities[name]}%` } }))))))))));
  },

  tables(state, { own, after }) {
    const weights = (name, { source, attention }) => [[name, "weight"], ...source.map((token, i) => [token, attention[i]])];
    const classes = Object.keys(own.probabilities).map((name) => [name, own.probabilities[name], after.probabilities[name]]);
    return [weights("own", own), weights("changed", after), [["class", "before", "after"], ...classes]];
  },
};

/** The tokens in the colours of their weights; with `onhide` as buttons that hide one from the attention, pads excepted. */
function colouredSentence(key, { source, attention }, title, hidden = [], onhide = null, before = 0, length = 0) {
  const most = Math.max(...attention, 1e-9);
  return h("figure", { class: "map", "data-key": key }, h("figcaption", {}, title),
    h("div", { class: "tokens coloured", role: "group", "aria-label": title }, source.map((token, i) => {
      const shade = attention[i] / most;
      const place = i - before;
      const properties = { title: `${label(token)}: ${attention[i].toFixed(5)}`,
        "data-weight": attention[i].toFixed(6), "aria-label": `${label(token)} ${attention[i].toFixed(3)}` };
      const content = [h("bdi", {}, label(token)), h("small", {}, attention[i].toFixed(2))];
      return onhide === null ? h("span", { ...properties, class: `heat-${level(shade)}`, role: "img" }, content)
        : h("button", { ...properties, type: "button", disabled: isSaved || place < 0 || place >= length, class: `heat-${level(shade)}${hidden.includes(place) ? " is-hidden" : ""}`,
          "aria-pressed": String(hidden.includes(place)), onclick: () => onhide(place) }, content);
    })));
}
