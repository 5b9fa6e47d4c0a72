// The page: its state lives in the address, each view loads what it needs and draws it.

import { ask, askAnew, forgetAnswers, isSaved, savedState, ServerGone } from "explorer/ask.js";
import { isDark } from "explorer/colours.js";
import { h, morph } from "explorer/dom.js";
import { sentenceOf } from "explorer/errors.js";
import { drawLines } from "explorer/heat_map.js";
import { inLooksOf, redone, remember, rememberVisit, undone, writeAddress } from "explorer/past.js";
import { changed, START, stateOf } from "explorer/state.js";
import { takeAway } from "explorer/take_away.js";
import { isInTextBox, letterOf, typed } from "explorer/typing.js";
import { modelName, say, setLanguage } from "explorer/words.js";
import { beam } from "explorer/views/beam.js";
import { classify } from "explorer/views/classify.js";
import { compare } from "explorer/views/compare.js";
import { formed, formedOfClassifier } from "explorer/views/formed.js";
import { losses, lossesOfClassifier } from "explorer/views/losses.js";
import { numbers, numbersOfClassifier } from "explorer/views/numbers.js";
import { pads } from "explorer/views/pads.js";
import { patch } from "explorer/views/patch.js";
import { reference } from "explorer/views/reference.js";
import { source } from "explorer/views/source.js";
import { translate } from "explorer/views/translate.js";
import { weights } from "explorer/views/weights.js";

const VIEWS = [translate, compare, weights, patch, source, beam, numbers, pads, reference, losses, formed, classify, numbersOfClassifier, lossesOfClassifier, formedOfClassifier];
const RETRY = 1500; // milliseconds between two tries to reach the server

const app = document.getElementById("app");
let state = START;
let models = [];
let command = ""; // that starts the server
let [drawing, stale, waiting] = [false, false, false];
let overwrite = false; // the box in which a person types shows the state as well, once
let scrolledTo = null; // the tab that was brought into view

/**
 * Change the state, the address and the picture. A change that goes by the newest state, which may not be drawn yet, is
 * a function of it; one that a person types or drags is "gradual".
 */
function update(wanted, how = null) {
  const before = state;
  const change = typeof wanted === "function" ? wanted(before) : wanted;
  state = changed(before, change);
  remember(before, state, how === "gradual" ? Object.keys(change).join() : null);
  return draw();
}

const undo = () => goTo(undone(state));
const redo = () => goTo(redone(state));

function goTo(other) {
  state = other ?? state;
  overwrite = true;
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
    const shown = await drawnView(now);
    if (stale) continue;
    show(now, shown);
    document.documentElement.dataset.milliseconds = (performance.now() - started).toFixed(1);
    document.documentElement.dataset.shown = now.text;
  }
  drawing = false;
  delete document.documentElement.dataset.drawing;
}

/** What a state shows: its view, the answers that it needed, and the content that it makes of them. */
async function drawnView(now) {
  const view = viewOf(now);
  const shown = { view, views: viewsOf(now), models, base: null, loaded: null, content: null };
  setLanguage(now.lang);
  drawLines(now.lines);
  document.documentElement.dataset.theme = now.theme;
  if (!now.text.trim() && !view.needsNoText) return { ...shown, content: h("p", { class: "quiet" }, say("empty")) };
  try {
    const isTranslation = view.kind === "translation" && now.text.trim();
    const base = isTranslation ? await ask(["translate", { model: now.model, text: now.text }]) : null;
    const loaded = await view.load(now, base, models);
    return { ...shown, base, loaded, content: view.draw(now, loaded, update, models) };
  } catch (error) {
    if (error instanceof ServerGone) waitForServer();
    return { ...shown, content: problem(error) };
  }
}

/** Why there is nothing to see, and what helps. */
function problem(error) {
  if (!(error instanceof ServerGone)) return h("p", { class: "error", role: "alert" }, sentenceOf(error));
  return h("div", { role: "alert" }, h("p", { class: "error" }, say("serverGone")), command && h("pre", {}, h("code", {}, command)),
    h("p", { class: "quiet" }, say("serverGoneHint")));
}

/** Go on as soon as the server is there again; its models may be others. */
async function waitForServer() {
  if (waiting) return;
  waiting = true;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, RETRY));
    const found = await askAnew(["models", null]).catch(() => null);
    if (found === null) continue;
    break;
  }
  waiting = false;
  forgetAnswers();
  await meetServer();
  state = { ...state, model: modelOf(state).name };
  draw();
}

async function meetServer() {
  models = await ask(["models", null]);
  command = (await ask(["about", null])).command;
}

const modelOf = (now) => models.find((model) => model.name === now.model) ?? models[0];
const kind = (now) => modelOf(now).kind;
const viewsOf = (now) => VIEWS.filter((view) => view.kind === kind(now) && (view.fits?.(modelOf(now)) ?? true) && !(isSaved && view.isLive));
const viewOf = (now) => viewsOf(now).find((view) => view.name === now.view) ?? viewsOf(now)[0];

function show(now, shown) {
  const name = shown.view.name;
  const panel = h("div", { id: "view", role: "tabpanel", tabindex: -1, "aria-labelledby": `tab-${name}`, "data-key": name }, shown.content);
  const page = h("div", {}, header(now),
    h("main", {}, sourceAndTranslation(now, shown.base), tabs(now, shown), panel));
  morph(app, page, overwrite);
  overwrite = false;
  scrollToTab();
}

/** Bring the chosen tab into view, once: then it stays where a person scrolls it. */
function scrollToTab() {
  const tab = app.querySelector("[role=tab][aria-selected=true]");
  if (scrolledTo === tab.id) return;
  scrolledTo = tab.id;
  const strip = tab.parentElement;
  strip.scrollLeft = tab.offsetLeft - strip.offsetLeft - (strip.clientWidth - tab.offsetWidth) / 2;
}

function header(now) {
  // An example is one of the model's; a text that was typed stays.
  const choose = ({ currentTarget: { value: model } }) =>
    update((old) => ({ model, text: old.text === modelOf(old).example ? modelOf({ model }).example : old.text }));
  const option = (model) => h("option", { value: model.name, selected: model.name === now.model }, modelName(model, models));
  return h("header", {},
    h("h1", {}, h("b", {}, "attnlab"), " ", say("title")),
    h("label", { class: "model" }, h("span", { class: "hidden" }, say("model")),
      h("select", { onchange: choose, value: now.model, disabled: isSaved }, models.map(option))),
    h("span", { class: "switches" },
      h("button", { type: "button", lang: now.lang === "ko" ? "en" : "ko", onclick: () => update({ lang: now.lang === "ko" ? "en" : "ko" }) }, say("language")),
      h("button", { type: "button", class: "theme", "aria-label": say("theme"), title: say("theme"),
        onclick: () => update({ theme: isDark() ? "light" : "dark" }) }, isDark() ? "☀" : "☾")));
}

function sourceAndTranslation(now, base) {
  const write = typed((text) => update({ text: text.replaceAll("\n", " ") }, "gradual"));
  return h("section", { class: "sentence", "aria-label": say("sentence") },
    h("label", {}, h("span", { class: "label" }, say("source")),
      h("textarea", { rows: 1, value: now.text, placeholder: say("placeholder"), spellcheck: "false", readonly: isSaved, oninput: write })),
    base && h("div", {}, h("span", { class: "label" }, say("translation")),
      h("p", { class: "translation", "aria-live": "polite" }, h("bdi", {}, base.text || "\u00a0")),
      h("span", { class: "quiet" }, `${say("score")} ${base.score.toFixed(4)}`)));
}

function tabs(now, shown) {
  const all = viewsOf(now);
  const chosen = all.indexOf(viewOf(now));
  const go = (event) => {
    const to = { ArrowRight: chosen + 1, ArrowLeft: chosen - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const { name } = all[(to + all.length) % all.length];
    update({ view: name }).then(() => document.getElementById(`tab-${name}`).focus());
  };
  const tab = (view, i) => h("button", { type: "button", role: "tab", id: `tab-${view.name}`, "aria-selected": String(i === chosen),
    "aria-controls": "view", tabindex: i === chosen ? 0 : -1, onclick: () => update({ view: view.name }) }, say(`view.${view.name}`));
  return h("div", { class: "toolbar" },
    h("div", { role: "tablist", "aria-label": say("views"), onkeydown: go }, all.map(tab)),
    takeAway(now, shown, { update, undo, redo }));
}

/** Take the state of the address: after the back button, and where a person edits it. */
function restore(event) {
  const before = state;
  const found = stateOf(location.hash, models);
  state = event.state?.isOurs ? inLooksOf(before, found) : found;
  rememberVisit(before, state);
  overwrite = true;
  return draw();
}

/** Ctrl+Z undoes, Ctrl+Shift+Z and Ctrl+Y redo; on a Mac with the Command key. */
function undoByKey(event) {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || isSaved || isInTextBox(event)) return;
  const act = { z: event.shiftKey ? redo : undo, y: redo }[letterOf(event)];
  if (act === undefined) return;
  event.preventDefault();
  act();
}

async function start() {
  await meetServer();
  // A font that comes after the first drawing would move what was scrolled into view.
  await document.fonts.load('15px "attnlab hangul"', "한").catch(() => null);
  state = stateOf(isSaved ? savedState : location.hash, models);
  writeAddress(state, false);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => update({}));
  addEventListener("popstate", restore);
  document.addEventListener("keydown", undoByKey);
  draw();
}

start();
