// One step with all of its numbers: the formulas in the order in which they are computed, and each symbol's matrix.

import { ask, isRecording, isSaved } from "explorer/ask.js";
import { padFields } from "explorer/changes.js";
import { h } from "explorer/dom.js";
import { fiveScores, fiveTables } from "explorer/five_scores.js";
import { formula, isOpen, matrix, symbolTables, useSheet, withSubscripts } from "explorer/symbols.js";
import { branchOf } from "explorer/views/translate.js";
import { say } from "explorer/words.js";

const MASKINGS = ["before", "after", "none"]; // minus infinity before the softmax, zero after it, or no mask
const ALL_HEADS = "all";
const RECURRENCES = ["skip", "read"]; // what the encoder does at pads
const SHEET = { opened: {}, windows: {}, masking: null, recurrence: null, head: 0 };

const sheetOf = (state) => ({ ...SHEET, ...state.sheet });
const isMasked = (state, models) => models.find((model) => model.name === state.model).masks_pads;

/** What becomes of pads: as a person chose, else as the model was trained. */
const maskingOf = (state, models) => sheetOf(state).masking ?? (isMasked(state, models) ? "before" : "none");

/** The arguments that both kinds of models take; a model that does not attend has no mask to change. */
function question(state, models, attends = true) {
  const { windows, recurrence } = sheetOf(state);
  const { before = 0, behind = 0 } = state.pads ?? {};
  const masking = maskingOf(state, models);
  const wantsMask = masking !== "none";
  const change = {};
  if (attends && wantsMask !== isMasked(state, models)) change.intervene = { mask_pads: wantsMask };
  if (recurrence !== null) change.recurrence = recurrence;
  return { model: state.model, text: state.text, edit: { before, behind }, masking: masking === "after" ? "after" : "before", windows, ...change };
}

export const numbers = {
  name: "numbers",
  kind: "translation",

  async load(state, base, models) {
    // The heat map says why a token cannot be written.
    const branch = state.branch && await branchOf(state, base).catch(() => null);
    const { ids } = branch ?? base;
    const step = Math.min(state.step ?? 0, ids.length - 1);
    const at = (each) => ask(["step_numbers", { ...question(state, models, base.attention !== null), target: ids, step: each }]);
    // A saved page shows every step.
    if (isRecording()) await Promise.all(ids.map((_, each) => at(each)));
    return { ...await at(step), branch };
  },

  draw(state, answer, update, models) {
    const { target, step, likeliest, branch } = answer;
    const go = (to) => update({ step: Math.min(Math.max(to, 0), target.length - 1) });
    const steps = h("div", { class: "steps", role: "group", "aria-label": say("chooseStep") },
      h("button", { type: "button", "aria-label": say("previous"), disabled: step === 0, onclick: () => go(step - 1) }, "←"),
      target.map((token, i) => h("button", { type: "button", "aria-pressed": String(i === step), class: branch && i === state.branch[0] ? "changed" : null,
        onclick: () => go(i) }, h("bdi", {}, token))),
      h("button", { type: "button", "aria-label": say("next"), disabled: step === target.length - 1, onclick: () => go(step + 1) }, "→"));
    const output = h("p", { class: "outputs" }, `${say("likeliest")}: `,
      likeliest[step].map(([token, , probability]) => h("span", { class: "output" }, h("bdi", {}, token), ` ${probability.toFixed(4)}`)));
    // These are the model's own, and not those of another mask at this step.
    const masking = maskingOf(state, models);
    return page(state, answer, update, masking, [steps, branch && ofBranch(branch, update)], masking === "after" ? null : output);
  },

  tables: (state, answer) => [...symbolTables(answer.symbols), ...(answer.scores ? fiveTables(answer.scores, answer.source) : [])],
};

/** The one look of a classifier. */
export const numbersOfClassifier = {
  ...numbers,
  kind: "classification",

  load: (state, base, models) => ask(["step_numbers", question(state, models)]),

  draw: (state, answer, update, models) => page(state, answer, update, maskingOf(state, models), null, null),
};

/** That the steps are those of another translation than the model's own, and the way back. */
const ofBranch = ({ text, score }, update) => h("p", {}, say("branchTranslation", text, score.toFixed(4)), " ",
  h("button", { type: "button", disabled: isSaved, onclick: () => update({ branch: null }) }, say("back")));

function page(state, answer, update, masking, steps, output) {
  const sheet = useSheet(answer.symbols, answer.step);
  const { opened } = sheetOf(state);
  const change = (wanted) => update((now) => ({ sheet: { ...now.sheet, ...wanted(sheetOf(now)) } }));
  const heads = headsOf(answer);
  const head = shownHead(state, heads);
  const isShown = (group) => group.head === null || head === ALL_HEADS || group.head === head;
  // A symbol of another head is folded until a person asks for it.
  const hidden = new Map(answer.groups.filter((group) => !isShown(group)).flatMap((group) => group.symbols.map((id) => [id, group.head])));
  const shownOpen = { ...opened, ...Object.fromEntries([...hidden.keys()].map((id) => [id, false])) };
  const toggle = (symbol) => change((now) => (hidden.has(symbol.id)
    ? { head: hidden.get(symbol.id), opened: { ...now.opened, [symbol.id]: true } }
    : { opened: { ...now.opened, [symbol.id]: !isOpen(symbol, now.opened) } }));
  const move = (id, start) => change(({ windows }) => ({ windows: { ...windows, [id]: start } }));
  const groups = answer.groups.filter(({ symbols, formulas }) => symbols.length + formulas.length > 0).filter(isShown);
  return h("div", { class: "sheet" },
    h("section", { class: "panel", "data-key": "steps" }, steps,
      h("div", { class: "pads" },
        h("div", { class: "controls" }, padFields({ before: 0, behind: 0, ...state.pads }, update)),
        answer.scores && choices("masking", MASKINGS, masking, change),
        answer.recurrence && choices("recurrence", RECURRENCES, answer.recurrence, change),
        heads.length > 1 && headChoice(heads, head, change)),
      h("p", { class: "quiet" }, say("sheet.hint"))),
    groups.map((group) => h("section", { class: "panel group", "data-key": `${group.number}-${group.about}-${group.head}` },
      h("h2", {}, h("span", { class: "number" }, String(group.number)), " ", withSubscripts(say(`group.${group.about}`, group.head))),
      h("div", { class: "lines" }, group.formulas.map((each) => formula(each, shownOpen, toggle))),
      h("div", { class: "matrices" }, group.symbols.map((id) => matrix(sheet.get(id), shownOpen, toggle, move))),
      group.about === "output" && output)),
    answer.scores?.map((scores, number) => (answer.scores.length === 1 ? fiveScores(scores, answer.source, null)
      : isShown({ head: number }) && fiveScores(scores, answer.source, number))),
    h("output", { class: "arithmetic", "aria-live": "polite" }, say("sheet.point")));
}

/** The numbers of the heads, counted from 0; none where there is one alone. */
const headsOf = ({ groups }) => [...new Set(groups.map(({ head }) => head))].filter((head) => head !== null);

/** The head whose formulas stand there, or all of them. */
function shownHead(state, heads) {
  const { head } = sheetOf(state);
  return head === ALL_HEADS || heads.includes(head) ? head : heads[0] ?? null;
}

/** A choice of the head whose formulas and scores are shown; a saved page has those of all. */
const headChoice = (heads, shown, change) => h("fieldset", { class: "choices" }, h("legend", {}, say("sheet.heads")), [...heads, ALL_HEADS].map((head) =>
  h("label", {}, h("input", { type: "radio", name: "head", checked: head === shown, onchange: () => change(() => ({ head })) }),
    head === ALL_HEADS ? say("sheet.allHeads") : say("headNumber", head))));

/** A choice of what becomes of pads. */
const choices = (name, all, chosen, change) => h("fieldset", { class: "choices" }, h("legend", {}, say(`sheet.${name}`)), all.map((each) =>
  h("label", {}, h("input", { type: "radio", name, checked: each === chosen, disabled: isSaved, onchange: () => change(() => ({ [name]: each })) }),
    say(`sheet.${name}.${each}`))));
