// What a change does: the log-probability of every token of the model's own translation, before and after.

import { h, scrolling } from "explorer/dom.js";
import { say } from "explorer/words.js";

const MOST = 4; // nats at which a bar is full
const LEAST = 0.00005; // a smaller change is written as 0.0000

/**
 * @param {{target, log_probs}} before the model's own reading of a target
 * @param {{target, log_probs}} after the same target under the change
 * @param {{unfolded}} state of the page: whether tokens that did not change are listed
 * @param {number|null} selected a token's number, which is always listed
 */
export function effects(before, after, state, update, selected = null) {
  const total = (reading) => reading.log_probs.reduce((sum, each) => sum + each, 0);
  const isUnchanged = (i) => Math.abs(after.log_probs[i] - before.log_probs[i]) < LEAST;
  const places = before.target.map((_, i) => i);
  const folded = places.filter((i) => isUnchanged(i) && i !== selected);
  const listed = state.unfolded ? places : places.filter((i) => !folded.includes(i));
  const names = ["target", "before", "after", "change"];

  return scrolling(say("effects"), h("table", { class: "effects" },
    h("caption", {}, say("effects")),
    h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, say(name))), h("td", {}))),
    h("tbody", {}, listed.map((i) => line(before.target[i], before.log_probs[i], after.log_probs[i], i === selected ? "selected" : null)),
      folded.length > 0 && fold(folded.length, state, update)),
    h("tfoot", {}, line(say("total"), total(before), total(after), null))));
}

/** A line of the table, with a bar for the change. */
function line(token, from, to, classes) {
  const change = to - from;
  const sign = change < 0 ? "−" : "+";
  const width = `${50 * Math.min(Math.abs(change) / MOST, 1)}%`;
  return h("tr", { class: classes }, h("th", { scope: "row", title: token }, h("bdi", {}, token)),
    h("td", {}, from.toFixed(4)), h("td", {}, to.toFixed(4)), h("td", {}, `${sign}${Math.abs(change).toFixed(4)}`),
    h("td", { class: "change", "aria-hidden": "true" }, h("i", { class: change < 0 ? "falls" : "rises", style: { width } })));
}

/** In place of the lines that did not change: how many they are, and a button that shows or hides them. */
function fold(count, state, update) {
  const toggle = () => update((now) => ({ unfolded: !now.unfolded }));
  return h("tr", { class: "fold" }, h("td", { colspan: 5 },
    say(count === 1 ? "tokenUnchanged" : "tokensUnchanged", count), " ",
    h("button", { type: "button", class: "link", "aria-expanded": String(state.unfolded), onclick: toggle },
      say(state.unfolded ? "hideUnchanged" : "showUnchanged"))));
}

/** A translation with the tokens marked that differ from another one. */
export function marked(answer, base) {
  return h("p", { class: "answer", "aria-live": "polite" }, h("span", { class: "label" }, say("newTranslation")),
    answer.target.map((token, i) => token === base.target[i] ? h("bdi", {}, shown(token)) : h("mark", {}, h("bdi", {}, shown(token)))),
    " ", h("span", { class: "quiet" }, answer.text === base.text ? say("unchanged") : answer.text));
}

const shown = (token) => (token.length > 1 ? ` ${token} ` : token);
