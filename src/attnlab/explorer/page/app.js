// The page: its state lives in the address, each view loads what it needs and draws it.

import { ask, isSaved, NOT_SAVED, recorded, savedState } from "explorer/ask.js";
import { isDark } from "explorer/colours.js";
import { h, morph } from "explorer/dom.js";
import { saveCsv, savePage, savePicture } from "explorer/save.js";
import { modelName, say, setLanguage } from "explorer/words.js";
import { beam } from "explorer/views/beam.js";
import { classify } from "explorer/views/classify.js";
import { compare } from "explorer/views/compare.js";
import { numbers } from "explorer/views/numbers.js";
import { pads } from "explorer/views/pads.js";
import { reference } from "explorer/views/reference.js";
import { source } from "explorer/views/source.js";
import { translate } from "explorer/views/translate.js";
import { weights } from "explorer/views/weights.js";

const VIEWS = [translate, compare, weights, source, beam, numbers, pads, reference, classify];
const OF_THE_TOKENS = { step: null, branch: null, weights: null, edits: null };
const START = { text: "", model: null, models: [], view: "translate", mode: "hide", beam: null, alpha: null,
  pads: null, changes: null, reference: null, relative: false, lang: "", theme: "", ...OF_THE_TOKENS };

const app = document.getElementById("app");
let state = START;
let models = [];
let [drawing, stale] = [false, false];
let scrolledTo = null; // the tab that was brought into view

/** The state that an address holds; what it lacks or cannot be is as at the start. */
function read(hash) {
  let found = {};
  try {
    found = { ...JSON.parse(decodeURIComponent(hash) || "{}") };
  } catch {
    // not one of our addresses
  }
  const { name: model, example } = modelOf(found) ?? models[0];
  const text = typeof found.text === "string" ? found.text : example;
  return { ...START, lang: navigator.language.startsWith("ko") ? "ko" : "", ...found, model, text };
}

/**
 * Change the state, the address and the picture; what belongs to a sentence is forgotten with it. A change that goes by
 * the newest state, which may not be drawn yet, is a function of it.
 */
function update(wanted) {
  const change = typeof wanted === "function" ? wanted(state) : wanted;
  const other = (name) => name in change && change[name] !== state[name];
  state = { ...state, ...(other("text") ? { reference: null } : {}), ...(other("text") || other("model") ? OF_THE_TOKENS : {}), ...change };
  const told = Object.entries(state).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(START[name]));
  if (!isSaved) history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify(Object.fromEntries(told)))}`);
  return draw();
}

/** Draw the newest state; while an answer is on its way, later states replace each other. */
async function draw() {
  stale = true;
  if (drawing) return;
  drawing = true;
  document.documentElement.dataset.drawing = "";
  while (stale) {
    stale = false;
    const now = state;
    const started = performance.now();
    let [content, base] = [null, null];
    setLanguage(now.lang);
    document.documentElement.dataset.theme = now.theme;
    try {
      if (now.text.trim()) [content, base] = await drawView(now);
      else content = h("p", { class: "quiet" }, say("empty"));
    } catch (error) {
      content = h("p", { class: "error", role: "alert" }, error.message === NOT_SAVED ? say("notSaved") : error.message);
    }
    if (stale) continue;
    show(now, content, base);
    document.documentElement.dataset.milliseconds = (performance.now() - started).toFixed(1);
    document.documentElement.dataset.shown = now.text;
  }
  drawing = false;
  delete document.documentElement.dataset.drawing;
}

async function drawView(now) {
  const view = viewOf(now);
  const base = kind(now) === "translation" ? await ask(["translate", { model: now.model, text: now.text }]) : null;
  return [view.draw(now, await view.load(now, base, models), update, models), base];
}

const modelOf = (now) => models.find((model) => model.name === now.model);
const kind = (now) => modelOf(now).kind;
const viewsOf = (now) => VIEWS.filter((view) => view.kind === kind(now));
const viewOf = (now) => viewsOf(now).find((view) => view.name === now.view) ?? viewsOf(now)[0];

function show(now, content, base) {
  const page = h("div", {}, header(now), sourceAndTranslation(now, base), tabs(now),
    h("main", { id: "view", role: "tabpanel", "aria-labelledby": `tab-${viewOf(now).name}`, "data-key": viewOf(now).name }, content));
  morph(app, page);
  const tab = app.querySelector("[role=tab][aria-selected=true]");
  const strip = tab.parentElement;
  if (scrolledTo === tab.id) return; // it stays where a person scrolled it
  scrolledTo = tab.id;
  strip.scrollLeft = tab.offsetLeft - strip.offsetLeft - (strip.clientWidth - tab.offsetWidth) / 2;
}

function header(now) {
  // An example is one of the model's; a text that was typed stays.
  const choose = ({ currentTarget: { value: model } }) =>
    update((old) => ({ model, text: old.text === modelOf(old).example ? modelOf({ model }).example : old.text }));
  return h("header", {},
    h("h1", {}, h("b", {}, "attnlab"), " ", say("title")),
    h("label", { class: "model" }, h("span", { class: "hidden" }, say("model")),
      h("select", { onchange: choose, value: now.model, disabled: isSaved },
        models.map((model) => h("option", { value: model.name, selected: model.name === now.model }, modelName(model, models))))),
    h("span", { class: "switches" },
      h("button", { type: "button", onclick: () => update({ lang: now.lang === "ko" ? "en" : "ko" }) }, say("language")),
      h("button", { type: "button", class: "theme", "aria-label": say("theme"), title: say("theme"),
        onclick: () => update({ theme: isDark() ? "light" : "dark" }) }, isDark() ? "☀" : "☾")));
}

/** The link, and what is shown as files. */
function takeAway(now) {
  const page = async () => savePage(await recorded(async () => {
    for (const view of viewsOf(now)) {
      const base = kind(now) === "translation" ? await ask(["translate", { model: now.model, text: now.text }]) : null;
      await view.load(now, base, models).catch(() => null); // a view that refuses this sentence has nothing to save
    }
  }), JSON.stringify(now));
  const copy = async ({ currentTarget: button }) => {
    await navigator.clipboard.writeText(location.href);
    button.textContent = say("copied");
    setTimeout(() => update({}), 1500);
  };
  const view = document.getElementById.bind(document, "view");
  return h("span", { class: "switches" },
    kind(now) === "translation" && h("label", {}, h("input", { type: "checkbox", class: "heat-relative", checked: now.relative,
      onchange: ({ currentTarget: { checked } }) => update({ relative: checked }) }), say("relative")),
    !isSaved && h("button", { type: "button", onclick: copy }, say("copyLink")),
    h("button", { type: "button", onclick: () => savePicture(view()) }, "PNG"),
    h("button", { type: "button", onclick: () => saveCsv(view()) }, "CSV"),
    !isSaved && h("button", { type: "button", onclick: page }, say("saveHtml")));
}

function sourceAndTranslation(now, base) {
  return h("section", { class: "sentence" },
    h("label", {}, h("span", { class: "label" }, say("source")),
      h("textarea", { rows: 1, value: now.text, placeholder: say("placeholder"), spellcheck: "false", readonly: isSaved,
        oninput: (event) => update({ text: event.currentTarget.value.replaceAll("\n", " ") }) })),
    base && h("div", {}, h("span", { class: "label" }, say("translation")),
      h("p", { class: "translation", "aria-live": "polite" }, h("bdi", {}, base.text || "\u00a0")),
      h("span", { class: "quiet" }, `${say("score")} ${base.score.toFixed(4)}`)));
}

function tabs(now) {
  const all = viewsOf(now);
  const chosen = all.indexOf(viewOf(now));
  const go = (event) => {
    const to = { ArrowRight: chosen + 1, ArrowLeft: chosen - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const { name } = all[(to + all.length) % all.length];
    update({ view: name }).then(() => document.getElementById(`tab-${name}`).focus());
  };
  return h("nav", {}, h("div", { role: "tablist", "aria-label": say("views"), onkeydown: go }, all.map((view, i) =>
    h("button", { type: "button", role: "tab", id: `tab-${view.name}`, "aria-selected": String(i === chosen), "aria-controls": "view",
      tabindex: i === chosen ? 0 : -1, onclick: () => update({ view: view.name }) }, say(`view.${view.name}`)))), now.text.trim() && takeAway(now));
}

async function start() {
  models = await ask(["models", null]);
  // A font that comes after the first drawing would move what was scrolled into view.
  await document.fonts.load('15px "attnlab hangul"', "한").catch(() => null);
  state = read(isSaved ? savedState : location.hash.slice(1));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => update({}));
  addEventListener("hashchange", () => {
    state = read(location.hash.slice(1));
    draw();
  });
  draw();
}

start();
