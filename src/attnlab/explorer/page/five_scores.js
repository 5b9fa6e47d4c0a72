// Five scores side by side on one query and the same keys: their energies, and the weights that a softmax makes of them.

import { written } from "explorer/arithmetic.js";
import { level } from "explorer/colours.js";
import { h } from "explorer/dom.js";
import { label } from "explorer/labels.js";
import { say } from "explorer/words.js";

/**
 * @param {{name, formula, energies, weights, weights_from, seed}[]} scores
 * @param {number|null} head that they belong to; null where there is one alone
 */
export function fiveScores(scores, source, head) {
  const nameOf = (score) => h("th", { scope: "row" }, h("b", {}, say(`score.${score.name}`)), h("code", {}, score.formula),
    h("small", {}, say(`sheet.from.${score.weights_from}`, score.seed)));
  const table = (name, cells) => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": say(name) }, h("table", { class: "five" },
    h("caption", {}, say(name)),
    h("thead", {}, h("tr", {}, h("td", {}), source.map((token) => h("th", { scope: "col" }, h("bdi", {}, label(token)))))),
    h("tbody", {}, scores.map((score) => h("tr", {}, nameOf(score), cells(score))))));
  const none = h("td", { colspan: source.length, class: "quiet text" }, say("sheet.unequal"));
  const [title, hint] = head === null ? [say("sheet.five"), say("sheet.fiveHint")] : [say("sheet.fiveOfHead", head), say("sheet.fiveHintOfHead")];
  return h("section", { class: "panel", "data-key": `five-${head}` },
    h("h2", {}, title), h("p", { class: "quiet" }, hint),
    source.length > 3 && h("p", { class: "narrow quiet" }, say("sheet.scroll", source.length)),
    h("div", { class: "abreast" },
      table("sheet.energies", ({ energies }) => (energies ? energies.map((value) => h("td", {}, written(value))) : none.cloneNode(true))),
      table("sheet.weights", ({ weights }) => (weights ? weights.map((value) => h("td", { class: `heat-${level(value)}` }, written(value))) : none.cloneNode(true)))));
}

/** The scores of each head as tables, with the head's number where there are several. */
export const fiveTables = (scoresOfHeads, source) => scoresOfHeads.flatMap((scores, head) => ["energies", "weights"].map((name) => {
  const corner = scoresOfHeads.length > 1 ? `${name}^(${head})` : name;
  return [[corner, ...source], ...scores.filter((score) => score[name]).map((score) => [score.name, ...score[name]])];
}));
