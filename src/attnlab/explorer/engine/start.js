// The start of an exported page: the engine answers in the server's place.

import { answerWith } from "explorer/ask.js";
import { START } from "explorer/state.js";
import { Backend } from "./backend.js";

const backend = new Backend(JSON.parse(document.getElementById("exported-models").textContent));
answerWith(async (name, body) => backend.answer(name, body));

// In a lesson the page is a part of another one: `?embed&model=...&text=...&view=weights&lang=ko` says what it shows.
const wanted = new URLSearchParams(location.search);
const isEmbedded = wanted.has("embed");
const TEXTS = ["text", "model", "view", "mode", "lang", "theme", "reference"]; // all other settings are JSON
const state = [...wanted].filter(([name]) => name in START).flatMap(([name, value]) => {
  if (TEXTS.includes(name)) return [[name, value]];
  try {
    return [[name, JSON.parse(value)]];
  } catch {
    return []; // as at the start
  }
});
if (state.length > 0 && location.hash === "") {
  history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify(Object.fromEntries(state)))}`);
}

// It is then as small as it can be, and tells the page around it how high it is.
if (isEmbedded) {
  document.documentElement.dataset.embed = "";
  history.pushState = (...place) => history.replaceState(...place); // the back button is that of the page around it
  const tell = () => parent.postMessage({ attnlabHeight: document.documentElement.scrollHeight }, "*");
  new ResizeObserver(tell).observe(document.body);
}

await import("explorer/app.js");
