// The beam as a tree: what was kept, pruned and finished at each step, and what the length penalty makes of it.

import { ask, isSaved } from "explorer/ask.js";
import { h, scrolling } from "explorer/dom.js";
import { label, terminalColumns } from "explorer/labels.js";
import { say } from "explorer/words.js";

const [HEIGHT, GAP] = [26, 14]; // of a node, and between two steps
const [NARROWEST, WIDEST] = [80, 190]; // pixels of a node; a longer token is cut, and read out in full
const [LETTER, NUMBER] = [8, 46]; // pixels of a letter, and of the log-probability with its margins

/** The hypotheses in their order under another length penalty (Wu et al. 2016, equation 14). */
export function ranked(hypotheses, alpha, own) {
  const penalty = (length, exponent) => ((5 + length) / 6) ** exponent;
  const extra = ({ score, log_prob: sum, length }) => score - sum / penalty(length, own); // of the coverage penalty
  return hypotheses.map((each) => ({ ...each, score: each.log_prob / penalty(each.length, alpha) + extra(each) }))
    .sort((one, other) => other.score - one.score);
}

export const beam = {
  name: "beam",
  kind: "translation",

  load: (state) => ask(["beam", { model: state.model, text: state.text, settings: state.beam ? { size: state.beam } : {} }]),

  draw(state, { nodes, hypotheses, length_penalty: own, size }, update) {
    const alpha = state.alpha ?? own;
    const order = ranked(hypotheses, alpha, own);
    const best = new Set();
    for (let node = order[0]?.node ?? null; node !== null; node = nodes[node].parent) best.add(node);
    return h("div", {},
      h("section", { class: "panel" }, h("div", { class: "controls" },
        h("label", {}, h("span", { class: "label" }, say("beamSize")), h("input", { type: "number", min: 1, max: 20, value: size, disabled: isSaved,
          onchange: (event) => update({ beam: Math.min(Math.max(Math.round(Number(event.currentTarget.value)) || 1, 1), 20) }) })),
        h("label", {}, h("span", { class: "label" }, say("alpha", alpha.toFixed(2))), h("input", { type: "range", min: 0, max: 3, step: 0.05, value: alpha,
          oninput: (event) => update({ alpha: Number(event.currentTarget.value) }, "gradual") })),
        h("button", { type: "button", disabled: state.alpha === null, onclick: () => update({ alpha: null }) }, say("reset"))),
      scrolling(say("hypotheses"), h("table", { class: "hypotheses" }, h("caption", {}, say("hypotheses")),
        h("thead", {}, h("tr", {}, h("td", {}), ["translation", "score", "logProb", "length"].map((name) => h("th", { scope: "col", class: name === "translation" ? "text" : null }, say(name))))),
        h("tbody", {}, order.map((each, i) => h("tr", { class: i ? "" : "selected" }, h("th", { scope: "row" }, `${i + 1}`),
          h("td", { class: "text" }, h("bdi", {}, each.text)), [each.score.toFixed(4), each.log_prob.toFixed(4), each.length].map((value) => h("td", {}, value)))))))),
      h("p", { class: "quiet key" }, ["kept", "finished", "pruned", "cut_off"].map((name) => h("span", { class: name }, say(name)))),
      tree(nodes, best));
  },

  tables(state, { nodes, hypotheses, length_penalty: own }) {
    const order = ranked(hypotheses, state.alpha ?? own, own);
    const rows = order.map((each, i) => [i + 1, each.text, each.score, each.log_prob, each.length]);
    const tree = nodes.map((node, i) => [i, node.parent ?? "", node.step + 1, node.token ?? "", node.log_prob, node.status]);
    return [[["rank", "translation", "score", "log_prob", "length"], ...rows],
      [["node", "parent", "step", "token", "log_prob", "status"], ...tree]];
  },
};

/** One column a step, its candidates from the likeliest down. */
function tree(nodes, best) {
  const longest = Math.max(...nodes.map((node) => terminalColumns(tokenOf(node))));
  const box = Math.min(Math.max(LETTER * longest + NUMBER, NARROWEST), WIDEST);
  const letters = Math.floor((box - NUMBER) / LETTER);
  const places = [];
  const columns = [];
  nodes.forEach((node, i) => {
    const column = (columns[node.step + 1] ??= []);
    places[i] = { x: (node.step + 1) * (box + GAP), y: column.length * HEIGHT };
    column.push(i);
  });
  const width = columns.length * (box + GAP);
  const height = Math.max(...columns.map((each) => each.length)) * HEIGHT;

  const edge = (i) => {
    const [from, to] = [places[nodes[i].parent], places[i]];
    const [start, end] = [from.y + HEIGHT / 2, to.y + HEIGHT / 2];
    const middle = (from.x + box + to.x) / 2;
    return h("path", { class: classesOf(i), d: `M${from.x + box} ${start}C${middle} ${start} ${middle} ${end} ${to.x} ${end}` });
  };
  const classesOf = (i) => `${nodes[i].status} ${best.has(i) ? "best" : ""}`.trim();
  const read = ({ currentTarget: node }) => {
    node.closest("figure").querySelector("output").textContent = node.getAttribute("aria-label");
  };
  const drawn = (node, i) => {
    const words = `${tokenOf(node)}: ${node.log_prob.toFixed(4)}, ${say(node.status)}`;
    return h("g", { class: classesOf(i), transform: `translate(${places[i].x} ${places[i].y + 2})`, role: "img", "aria-label": words,
      tabindex: i === 0 ? 0 : -1, onfocus: read, onpointerenter: read },
    h("svg:title", {}, words),
    h("rect", { width: box, height: HEIGHT - 4, rx: 4 }),
    h("text", { x: 5, y: 15 }, cut(tokenOf(node), letters)),
    node.parent === null ? null : h("text", { class: "sum", x: box - 4, y: 15, "text-anchor": "end" }, node.log_prob.toFixed(1)));
  };
  return h("figure", { class: "map", "data-key": "tree" },
    h("div", { class: "scroll tree", tabindex: 0, role: "group", "aria-label": say("view.beam"), onkeydown: (event) => step(event, nodes) },
      h("svg", { width, height, role: "group", "aria-label": say("treeLabel", nodes.length) },
        nodes.map((node, i) => node.parent === null ? null : edge(i)), nodes.map(drawn))),
    h("output", { "aria-live": "polite" }, say("treeHint")));
}

const tokenOf = (node) => (node.token ? label(node.token) : "<bos>");

/** As many letters as fit; Hangul, kana and kanji take two places. */
function cut(token, places) {
  if (terminalColumns(token) <= places) return token;
  let shown = "";
  for (const letter of token) {
    if (terminalColumns(shown + letter) > places - 1) break;
    shown += letter;
  }
  return `${shown}…`;
}

/** Arrow keys go along the tree: to the parent, to the first child, and to the neighbours of a step. */
function step(event, nodes) {
  const drawn = [...event.currentTarget.querySelectorAll("g")];
  const here = Math.max(drawn.indexOf(document.activeElement), 0);
  const beside = nodes.flatMap((node, i) => (node.step === nodes[here].step ? [i] : []));
  const to = {
    ArrowLeft: nodes[here].parent,
    ArrowRight: nodes.findIndex((node) => node.parent === here),
    ArrowUp: beside[beside.indexOf(here) - 1],
    ArrowDown: beside[beside.indexOf(here) + 1],
  }[event.key];
  if (drawn[to] === undefined) return;
  event.preventDefault();
  drawn[to].focus();
}
