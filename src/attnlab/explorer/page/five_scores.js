// Five scores side by side on one query and the same keys: their energies, and the weights that a softmax makes of them.

import { written } from "explorer/arithmetic.js";
import { level } from "explorer/colours.js";
import { h } from "explorer/dom.js";
import { label } from "explorer/labels.js";
import { say } from "explorer/words.js";

/** @param {{name, formula, energies, weights, weights_from, seed}[]} scores */
export function fiveScores(scores, source) {
  const head = (score) => h("th", { scope: "row" }, h("b", {}, say(`score.${score.name}`)), h("code", {}, score.formula),
    h("small", {}, say(`sheet.from.${score.weights_from}`, score.seed)));
  const table = (name, cells) => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": say(name) }, h("table", { class: "five" },
    h("caption", {}, say(name)),
    h("thead", {}, h("tr", {}, h("td", {}), source.map((token) => h("th", { scope: "col" }, h("bdi", {}, label(token)))))),
    h("tbody", {}, scores.map((score) => h("tr", {}, head(score), cells(score))))));
  const none = h("td", { colspan: source.length, class: "quiet text" }, say("sheet.unequal"));
  return h("section", { class: "panel", "data-key": "five" },
    h("h2", {}, say("sheet.five")), h("p", { class: "quiet" }, say("sheet.fiveHint")),
    source.length > 3 && h("p", { class: "narrow quiet" }, say("sheet.scroll", source.length)),
    h("div", { class: "abreast" },
      table("sheet.energies", ({ energies }) => (energies ? energies.map((value) => h("td", {}, written(value))) : none.cloneNode(true))),
      table("sheet.weights", ({ weights }) => (weights ? weights.map((value) => h("td", { class: `heat-${level(value)}` }, written(value))) : none.cloneNode(true)))));
}

export const fiveTables = (scores, source) => ["energies", "weights"].map((name) =>
  [[name, ...source], ...scores.filter((score) => score[name]).map((score) => [score.name, ...score[name]])]);
