// The beam as a tree: what was kept, pruned and finished at each step, and what the length penalty makes of it.

import { ask, isSaved } from "explorer/ask.js";
import { h } from "explorer/dom.js";
import { say } from "explorer/words.js";

const [WIDTH, HEIGHT, BOX] = [94, 26, 80];

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
          oninput: (event) => update({ alpha: Number(event.currentTarget.value) }) })),
        h("button", { type: "button", disabled: state.alpha === null, onclick: () => update({ alpha: null }) }, say("reset"))),
      h("div", { class: "scroll" }, h("table", { class: "hypotheses" }, h("caption", {}, say("hypotheses")),
        h("thead", {}, h("tr", {}, h("td", {}), ["translation", "score", "logProb", "length"].map((name) => h("th", { scope: "col" }, say(name))))),
        h("tbody", {}, order.map((each, i) => h("tr", { class: i ? "" : "selected" }, h("th", { scope: "row" }, `${i + 1}`),
          h("td", { class: "text" }, h("bdi", {}, each.text)), [each.score.toFixed(4), each.log_prob.toFixed(4), each.length].map((value) => h("td", {}, value)))))))),
      h("p", { class: "quiet key" }, ["kept", "finished", "pruned", "cut_off"].map((name) => h("span", { class: name }, say(name)))),
      tree(nodes, best));
  },
};

/** One column a step, its candidates from the likeliest down. */
function tree(nodes, best) {
  const places = [];
  const columns = [];
  nodes.forEach((node, i) => {
    const column = (columns[node.step + 1] ??= []);
    places[i] = { x: (node.step + 1) * WIDTH, y: column.length * HEIGHT };
    column.push(i);
  });
  const [width, height] = [columns.length * WIDTH, Math.max(...columns.map((each) => each.length)) * HEIGHT];
  const edge = (i) => {
    const [from, to] = [places[nodes[i].parent], places[i]];
    const [x, y, middle] = [from.x + BOX, from.y + HEIGHT / 2, (from.x + BOX + to.x) / 2];
    return h("path", { class: `${nodes[i].status} ${best.has(i) ? "best" : ""}`, d: `M${x} ${y}C${middle} ${y} ${middle} ${to.y + HEIGHT / 2} ${to.x} ${to.y + HEIGHT / 2}` });
  };
  const name = (i) => `${nodes[i].token || "<bos>"} ${nodes[i].log_prob.toFixed(2)} ${say(nodes[i].status)}`;
  return h("div", { class: "scroll tree", tabindex: 0, role: "region", "aria-label": say("view.beam") },
    h("svg", { width, height, role: "img", "aria-label": say("treeLabel", nodes.length) },
      nodes.map((node, i) => node.parent === null ? null : edge(i)),
      nodes.map((node, i) => h("g", { class: `${node.status} ${best.has(i) ? "best" : ""}`, transform: `translate(${places[i].x} ${places[i].y + 2})`, "aria-label": name(i) },
        h("rect", { width: BOX, height: HEIGHT - 4, rx: 4 }),
        h("text", { x: 5, y: 15 }, [...(node.token || "•")].slice(0, 5).join("")),
        node.parent === null ? null : h("text", { class: "sum", x: BOX - 4, y: 15, "text-anchor": "end" }, node.log_prob.toFixed(1))))));
}
