// A button for each target token, which chooses the step that a view shows.

import { h } from "explorer/dom.js";
import { label } from "explorer/labels.js";
import { say } from "explorer/words.js";

/** `chosen` is the step that is shown; `isChanged` says of a step whether its token is marked. */
export function stepButtons(target, chosen, choose, isChanged = () => false) {
  const button = (token, step) => h("button", { type: "button", "aria-pressed": String(step === chosen),
    class: isChanged(step) ? "changed" : "", onclick: () => choose(step) }, h("bdi", {}, label(token)));
  return h("div", { class: "steps", role: "group", "aria-label": say("chooseStep") }, target.map(button));
}
