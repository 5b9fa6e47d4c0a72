// How the attention formed: the maps of a sentence at the validations of the training, under a slider, with the curves
// of the loss and of the metric; up to four models in step.

import { ask } from "explorer/ask.js";
import { mapTables } from "explorer/csv.js";
import { curve, MARKS } from "explorer/curve.js";
import { h } from "explorer/dom.js";
import { heatMap } from "explorer/heat_map.js";
import { metricName, modelName, say } from "explorer/words.js";

const MOST = 4;
const MANY = 20; // source tokens that do not fit beside the panel
const TEMPO = 600; // milliseconds of a validation that plays

let timer = null; // of the next validation; null while nothing plays

/** A sentence as one reads it; equal for models that split it in different ways, once its spaces are away. */
const textOf = ({ source }) => {
  const tokens = source.filter((token) => token !== "<eos>");
  const areCharacters = tokens.includes("␣") || tokens.every((token) => [...token].length === 1);
  return areCharacters ? tokens.join("").replaceAll("␣", " ") : tokens.join(" ");
};
const keyOf = (sentence) => textOf(sentence).replaceAll(" ", "").toLowerCase();

/** The newest of ascending steps that is not later than another one; the first where all are later. */
const placeAt = (steps, step) => Math.max(0, steps.findLastIndex((each) => each <= step));

export const formed = {
  name: "formed",
  kind: "translation",
  needsNoText: true,

  fits: ({ has_formed: hasFormed }) => Boolean(hasFormed),

  async load(state, base, models) {
    const own = models.find((model) => model.name === state.model);
    const known = models.filter((model) => model.has_formed && model.kind === own.kind).map((model) => model.name);
    const wanted = new Set([state.model, ...(state.models.length ? state.models : known)].filter((name) => known.includes(name)));
    const names = known.filter((name) => [...wanted].slice(0, MOST).includes(name));
    const answers = await Promise.all(names.map((model) => ask(["formed", { model }])));
    return { known, names, answers };
  },

  draw(state, { known, names, answers }, update, models) {
    const { sentences } = answers[names.indexOf(state.model)];
    const { steps, step, sentence } = shownOf(state, sentences, answers);
    const go = (place, how) => update({ formed: { sentence, step: steps[place] } }, how);
    const place = steps.indexOf(step);
    const choose = (chosen) => {
      stop();
      return go(chosen, "gradual");
    };
    if (timer !== null) playOn(state, steps, update);
    const shown = (name) => modelName(models.find((model) => model.name === name), models);

    const key = keyOf(sentences[sentence]);
    const ever = answers.flatMap((answer) => targetsOf(answer, key));
    const maps = answers.map((answer, i) => figure(answer, i, key, step, { name: names.length > 1 ? shown(names[i]) : null, abreast: names.length, ever }));
    const needsWidth = names.length > 1 || sentences[sentence].source.length > MANY;
    return h("div", { class: needsWidth ? "formed above" : "formed beside" },
      h("div", { class: "maps" }, maps),
      h("section", { class: "panel", "aria-label": say("view.formed") },
        h("div", {}, h("p", { class: "quiet" }, say("formedHint")),
        known.length > 1 && chosenModels(state, known, names, shown, update),
        sentences.length > 1 && chosenSentence(sentences, sentence, (number) => update({ formed: { sentence: number, step } })),
        h("div", { class: "controls" },
          playButton(place, steps, go, update),
          h("label", { class: "step" }, h("span", { class: "label" }, say("afterSteps", step)),
            h("input", { type: "range", min: 0, max: steps.length - 1, step: 1, value: place, "aria-valuetext": say("afterSteps", step),
              oninput: ({ currentTarget: { value } }) => choose(Number(value)) })))),
        curves(answers, names.length > 1 ? names.map(shown) : [], step, (wanted) => choose(placeAt(steps, wanted)))));
  },

  tables(state, { names, answers }) {
    const { sentences } = answers[names.indexOf(state.model)];
    const { step, sentence } = shownOf(state, sentences, answers);
    const maps = answers.map((answer) => mapAt(answer, keyOf(sentences[sentence]), step));
    return mapTables(names.map((name, i) => [`${name}, step ${answers[i].steps[placeAt(answers[i].steps, step)]}`, maps[i]]));
  },
};

export const formedOfClassifier = { ...formed, kind: "classification" };

/** All steps of the models, and which of them is shown, with the number of the sentence; at first the last step. */
function shownOf(state, sentences, answers) {
  const steps = [...new Set(answers.flatMap((answer) => answer.steps))].sort((one, other) => one - other);
  const wanted = state.formed?.step ?? steps.at(-1);
  const sentence = Math.min(state.formed?.sentence ?? 0, sentences.length - 1);
  return { steps, step: steps[placeAt(steps, wanted)], sentence };
}

/** What a heat map takes: the map of a sentence at the newest validation until a step; null where there is none. */
function mapAt({ steps, sentences }, key, step) {
  const found = sentences.find((each) => keyOf(each) === key);
  const map = found?.maps[placeAt(steps, step)];
  return map ? { source: found.source, ...map } : null;
}

/** What a model wrote of a sentence at its validations. */
function targetsOf({ sentences }, key) {
  const found = sentences.find((each) => keyOf(each) === key);
  return found?.maps.flatMap((map) => (map ? [map.target] : [])) ?? [];
}

function figure(answer, number, key, step, { name, abreast, ever }) {
  const map = mapAt(answer, key, step);
  const own = answer.steps[placeAt(answer.steps, step)];
  const title = h("span", {}, name && [h("b", {}, `${MARKS[number]} ${name}`), h("br")], say("afterSteps", own));
  if (map === null) return h("figure", { class: "map", "data-key": `formed-${number}` }, h("figcaption", {}, title), say("noSentence"));
  return heatMap(`formed-${number}`, map, { marks: map.marks, abreast, title, ever });
}

function chosenModels(state, known, names, shown, update) {
  const toggle = (name) => names.includes(name) ? names.filter((each) => each !== name) : [...names, name];
  return h("fieldset", { class: "choices" }, h("legend", {}, say("compareHint", MOST)), known.map((name) =>
    h("label", {}, h("input", { type: "checkbox", checked: names.includes(name),
      disabled: name === state.model || (!names.includes(name) && names.length === MOST),
      onchange: () => update({ models: toggle(name) }) }), shown(name))));
}

function chosenSentence(sentences, sentence, choose) {
  return h("label", {}, h("span", { class: "label" }, say("validationSentence")),
    h("select", { class: "wide", onchange: ({ currentTarget: { value } }) => choose(Number(value)), value: sentence },
      sentences.map((each, i) => h("option", { value: i, selected: i === sentence }, textOf(each)))));
}

/** Loss and metric over the steps, each with the values at the step that is shown. */
function curves(answers, names, step, choose) {
  const metric = answers.find((answer) => answer.metric)?.metric.name;
  const ofMetric = answers.map((answer) => (answer.metric?.name === metric ? answer.metric.points : null));
  const drawn = [["loss", say("validationLoss"), answers.map((answer) => answer.loss)], ["metric", metric && metricName(metric), ofMetric]];
  return h("div", { class: "abreast" }, drawn.filter(([, , lines]) => lines.some((points) => points?.length))
    .map(([key, title, lines]) => curve(key, title, lines, names, step, choose)));
}

/** Plays and pauses; for a person who wants less motion it goes one validation ahead. */
function playButton(place, steps, go, update) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
    return h("button", { type: "button", class: "play", onclick: () => go((place + 1) % steps.length) }, say("nextValidation"));
  }
  const isPlaying = timer !== null;
  const toggle = () => {
    if (timer !== null) {
      stop();
      return update({});
    }
    timer = 0; // the drawing sets it
    const isAtEnd = place === steps.length - 1;
    return go(isAtEnd ? 0 : place + 1);
  };
  return h("button", { type: "button", class: "play", disabled: steps.length < 2, onclick: toggle }, say(isPlaying ? "pause" : "play"));
}

function stop() {
  clearTimeout(timer);
  timer = null;
}

/** Go to the next validation after a while, unless another view or the last step has come. */
function playOn(state, steps, update) {
  clearTimeout(timer);
  if (state.formed?.step >= steps.at(-1)) return stop();
  timer = setTimeout(() => update((now) => {
    if (now.view !== "formed") {
      stop();
      return {};
    }
    const next = steps[Math.min(placeAt(steps, now.formed?.step ?? 0) + 1, steps.length - 1)];
    return { formed: { ...now.formed, step: next } };
  }), TEMPO);
  return undefined;
}
