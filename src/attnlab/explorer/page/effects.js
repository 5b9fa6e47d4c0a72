// What a change does: the log-probability of every token of the model's own translation, before and after.

import { h } from "explorer/dom.js";
import { say } from "explorer/words.js";

const MOST = 4; // nats at which a bar is full

/**
 * @param {{target, log_probs}} before the model's own reading of a target
 * @param {{target, log_probs}} after the same target under the change
 * @param {number|null} selected a token's number
 */
export function effects(before, after, selected = null) {
  const total = (reading) => reading.log_probs.reduce((sum, each) => sum + each, 0);
  const line = (token, from, to, classes) => {
    const change = to - from;
    const width = `${50 * Math.min(Math.abs(change) / MOST, 1)}%`;
    return h("tr", { class: classes }, h("th", { scope: "row" }, h("bdi", {}, token)),
      h("td", {}, from.toFixed(4)), h("td", {}, to.toFixed(4)), h("td", {}, `${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(4)}`),
      h("td", { class: "change", "aria-hidden": "true" }, h("i", { class: change < 0 ? "falls" : "rises", style: { width } })));
  };
  return h("div", { class: "scroll" }, h("table", { class: "effects" },
    h("caption", {}, say("effects")),
    h("thead", {}, h("tr", {}, ["target", "before", "after", "change"].map((name) => h("th", { scope: "col" }, say(name))), h("td", {}))),
    h("tbody", {}, before.target.map((token, i) => line(token, before.log_probs[i], after.log_probs[i], i === selected ? "selected" : ""))),
    h("tfoot", {}, line(say("total"), total(before), total(after), ""))));
}

/** A translation with the tokens marked that differ from another one. */
export function marked(answer, base) {
  return h("p", { class: "answer", "aria-live": "polite" }, h("span", { class: "label" }, say("newTranslation")),
    answer.target.map((token, i) => token === base.target[i] ? h("bdi", {}, shown(token)) : h("mark", {}, h("bdi", {}, shown(token)))),
    " ", h("span", { class: "quiet" }, answer.text === base.text ? say("unchanged") : answer.text));
}

const shown = (token) => (token.length > 1 ? ` ${token} ` : token);
