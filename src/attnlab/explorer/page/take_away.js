// The bar beside the views: how maps are drawn, undo and redo, the link, and what is shown as files.

import { ask, isExported, isSaved, recorded } from "explorer/ask.js";
import { isFaint } from "explorer/colours.js";
import { csvOf } from "explorer/csv.js";
import { h } from "explorer/dom.js";
import { canRedo, canUndo } from "explorer/past.js";
import { saveCsv, savePage, savePicture } from "explorer/save.js";
import { say } from "explorer/words.js";

/**
 * @param {object} now the state that is drawn
 * @param {{view, views, base, loaded, models}} shown the view, all that the model has, the answers of the sentence and of the view
 * @param {{update, undo, redo}} act
 */
export function takeAway(now, { view, views, base, loaded, models }, { update, undo, redo }) {
  const panel = () => document.getElementById("view");
  const hasText = now.text.trim() !== "";
  const tables = view.tables && loaded !== null ? view.tables(now, loaded, models) : [];
  const isEmpty = tables.length === 0; // such as the heat map of a model without attention, which is a sentence
  const button = (name, onclick, disabled = false) => h("button", { type: "button", onclick, disabled }, name);
  return h("div", { class: "switches" },
    base !== null && [drawnAs(now, update), relativeBox(now, base, update)],
    !isSaved && h("span", { class: "together" }, button(say("undo"), undo, !canUndo()), button(say("redo"), redo, !canRedo())),
    hasText && [
      !isSaved && button(say("copyLink"), (event) => copyLink(event.currentTarget, update)),
      button("PNG", () => savePicture(panel()), isEmpty),
      button("CSV", () => saveCsv(csvOf(tables)), isEmpty),
      !isSaved && !isExported && button(say("saveHtml"), async () => savePage(await recorded(() => askAll(now, views, models)), JSON.stringify(now))),
    ]);
}

/** Cells or lines. */
function drawnAs(now, update) {
  return h("span", { class: "segments", role: "group", "aria-label": say("drawnAs") }, ["cells", "lines"].map((name) => {
    const isLines = name === "lines";
    return h("button", { type: "button", "aria-pressed": String(now.lines === isLines), onclick: () => update({ lines: isLines }) }, say(name));
  }));
}

/** Whether each row has a scale of its own: a person says, or else the weights of the sentence do. */
function relativeBox(now, base, update) {
  return h("label", {}, h("input", { type: "checkbox", class: "heat-relative", checked: now.relative ?? isFaint(base.attention),
    onchange: ({ currentTarget: { checked } }) => update({ relative: checked }) }), say("relative"));
}

async function copyLink(button, update) {
  try {
    await navigator.clipboard.writeText(location.href);
  } catch {
    prompt(say("copyLink"), location.href); // a page over http, or in another one, may not write there
    return;
  }
  button.textContent = say("copied");
  setTimeout(() => update({}), 1500);
}

/** Ask what every view of a sentence asks, for a page that is saved. */
async function askAll(now, views, models) {
  for (const view of views.filter((each) => !each.isLive)) {
    const base = view.kind === "translation" ? await ask(["translate", { model: now.model, text: now.text }]) : null;
    await view.load(now, base, models).catch(() => null); // a view that refuses this sentence has nothing to save
  }
}
