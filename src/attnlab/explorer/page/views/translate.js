// A sentence, its heat map, the likeliest tokens of a step, and what comes of another token there.

import { ask, isSaved } from "explorer/ask.js";
import { mapTables } from "explorer/csv.js";
import { h } from "explorer/dom.js";
import { sentenceOf } from "explorer/errors.js";
import { heatMap } from "explorer/heat_map.js";
import { marksOfPair } from "explorer/marks.js";
import { say } from "explorer/words.js";

const MANY = 20; // source tokens that do not fit beside the panel

/** What to force so that a translation goes on from another token. */
const forced = (base, [step, token]) =>
  Object.fromEntries([...base.ids.slice(0, step), token].map((each, i) => [i, each]));

/** The translation that goes on from the token that a person chose; throws where the model cannot write that token. */
export const branchOf = (state, base) => ask(["translate", { model: state.model, text: state.text, intervene: { force: forced(base, state.branch) } }]);

/** The numbers of the tokens that stand in one translation and not in the other at the same place. */
export const differing = (one, other) =>
  one.target.flatMap((token, i) => (token === other.target[i] ? [] : [i]));

export const translate = {
  name: "translate",
  kind: "translation",

  async load(state, base) {
    const marks = await marksOfPair(state.model, state.text, base);
    if (!state.branch) return { base, marks, branch: null };
    try {
      return { base, marks, branch: await branchOf(state, base) };
    } catch (error) {
      return { base, marks, branch: null, refused: sentenceOf(error) };
    }
  },

  draw(state, { base, marks, branch, refused }, update) {
    const step = Math.min(state.step ?? 0, base.target.length - 1);
    const onselect = (row) => update({ step: row, branch: null });
    const changed = branch ? differing(branch, base) : [];
    const abreast = branch ? 2 : 1;
    const own = heatMap("own", base, { selected: step, onselect, marks, abreast, title: branch && say("ownTranslation", base.text) });
    const other = branch && heatMap("branch", branch, { selected: state.branch[0], changed, abreast,
      title: say("branchTranslation", branch.text, branch.score.toFixed(4)) });
    // Two maps, or one of many columns, need the whole width.
    const isLong = branch !== null || base.source.length > MANY;
    return h("div", { class: isLong ? "beside long" : "beside" }, h("div", { class: "maps" }, own, other), panel(base, step, state, update, refused));
  },

  tables: (state, { base, branch }) => mapTables([["target", base], ["branch", branch]]),
};

/** The likeliest tokens of a step, each a button that puts it there. */
function panel(base, step, state, update, refused) {
  const choose = (token) => update({ step, branch: [step, token] });
  const other = (event) => {
    event.preventDefault();
    const token = event.currentTarget.elements.token.value.trim();
    if (token) choose(token);
  };
  const chosen = state.branch?.[0] === step ? state.branch[1] : base.ids[step];
  const likely = ([token, id, probability]) => h("li", {},
    h("button", { type: "button", class: "choice", "aria-pressed": String(id === chosen), disabled: isSaved, title: token, onclick: () => choose(id) },
      h("bdi", {}, token), h("span", { class: "bar" }, h("i", { style: { width: `${100 * probability}%` } })),
      h("span", { class: "number" }, probability.toFixed(4))));
  return h("section", { class: "panel", "aria-label": say("likeliest") },
    h("div", { class: "title" }, h("h2", {}, say("step", step + 1), " ", h("bdi", { class: "token" }, base.target[step]))),
    h("p", { class: "quiet" }, say("panelHint")),
    h("ol", { class: "likeliest" }, base.likeliest[step].map(likely)),
    !isSaved && h("form", { class: "controls", onsubmit: other }, h("label", {}, h("span", { class: "label" }, say("otherToken")),
      h("input", { type: "text", name: "token", size: 12, autocomplete: "off", value: typeof chosen === "string" ? chosen : "" })),
    h("button", { type: "submit" }, say("translateAnew")),
    state.branch && h("button", { type: "button", onclick: () => update({ branch: null }) }, say("back"))),
    refused && h("p", { class: "error", role: "alert" }, refused));
}
