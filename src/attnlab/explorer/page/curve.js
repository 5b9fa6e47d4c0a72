// A learning curve of one or more models, with a mark at one step.

import { h } from "explorer/dom.js";
import { say } from "explorer/words.js";

export const MARKS = ["①", "②", "③", "④"]; // of the models
const [WIDTH, HEIGHT] = [300, 130];
const [LEFT, RIGHT, TOP, BOTTOM] = [38, 18, 8, 20];

/**
 * @param {string} key of the drawing on its page
 * @param {(Array<[number, number]>|null)[]} lines the points [step, value] of each model, by ascending steps
 * @param {string[]} names of the models; empty for one alone
 * @param {number} step that is marked
 * @param {function(number)} choose what pointing at another step does, with the button held
 */
export function curve(key, title, lines, names, step, choose) {
  const points = lines.flatMap((line) => line ?? []);
  const last = Math.max(step, ...points.map(([each]) => each));
  const highest = Math.max(...points.map(([, value]) => value));
  const lowest = Math.min(0, ...points.map(([, value]) => value));
  const x = (each) => LEFT + (WIDTH - LEFT - RIGHT) * each / (last || 1);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (highest - value) / (highest - lowest || 1);
  const path = (line) => `M${line.map(([each, value]) => `${x(each).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}`;
  const at = (line) => line?.findLast(([each]) => each <= step);

  const point = (event) => {
    if (event.buttons !== 1) return;
    const box = event.currentTarget.getBoundingClientRect();
    const pointed = (event.clientX - box.left) * WIDTH / box.width;
    choose(last * (pointed - LEFT) / (WIDTH - LEFT - RIGHT));
  };

  const drawn = lines.map((line, i) => line && [
    h("path", { d: path(line), class: `model-${i}` }),
    names.length > 0 && h("text", { x: x(line.at(-1)[0]) + 4, y: y(line.at(-1)[1]) + 4, class: `model-${i}` }, MARKS[i]),
    at(line) && h("circle", { cx: x(at(line)[0]), cy: y(at(line)[1]), r: 4, class: `model-${i}` })]);
  const values = lines.map((line, i) => [names.length > 0 ? MARKS[i] : "", at(line) ? numberText(at(line)[1]) : "–"].join(" ").trim());
  return h("figure", { class: "curve", "data-key": key },
    h("figcaption", {}, title, ": ", h("b", {}, values.join("  "))),
    h("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": say("curveLabel", title, last),
      onpointerdown: point, onpointermove: point },
      h("path", { class: "axes", d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}` }),
      h("path", { class: "now", d: `M${x(step)} ${TOP}V${HEIGHT - BOTTOM}` }),
      h("text", { x: LEFT - 4, y: TOP + 8, class: "end" }, numberText(highest)),
      h("text", { x: LEFT - 4, y: HEIGHT - BOTTOM, class: "end" }, numberText(lowest)),
      h("text", { x: LEFT, y: HEIGHT - 5 }, "0"),
      h("text", { x: WIDTH - RIGHT, y: HEIGHT - 5, class: "end" }, last),
      drawn));
}

const numberText = (value) => String(Number(value.toPrecision(3)));
