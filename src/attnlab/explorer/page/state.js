// The state of the page: at the start, after a change, and in an address.

const OF_THE_TOKENS = { step: null, branch: null, weights: null, edits: null, patchPairs: null };

/** relative and lines are null until a person chooses: the map then takes what suits it. */
export const START = {
  text: "", model: null, models: [], view: "translate", mode: "hide", beam: null, alpha: null, pads: null, changes: null,
  reference: null, relative: null, lines: false, unfolded: false, losses: null, formed: null, sheet: null, lang: "", theme: "",
  heads: null, patch: null, ...OF_THE_TOKENS,
};

/** The state after a change; what belongs to a sentence is forgotten with it. */
export function changed(state, change) {
  const isOther = (name) => name in change && change[name] !== state[name];
  const forgotten = {};
  if (isOther("model")) Object.assign(forgotten, { heads: null });
  if (isOther("text")) Object.assign(forgotten, { reference: null });
  if (isOther("text") || isOther("model")) Object.assign(forgotten, OF_THE_TOKENS);
  return { ...state, ...forgotten, ...change };
}

/** The names of what differs between two states. */
export const differences = (one, other) =>
  Object.keys(START).filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]));

/** The part of an address behind its `#`. */
export function addressOf(state) {
  const told = differences(state, START).map((name) => [name, state[name]]);
  return `#${encodeURIComponent(JSON.stringify(Object.fromEntries(told)))}`;
}

/** The state that an address holds; what it lacks or cannot be is as at the start. */
export function stateOf(address, models) {
  let found = {};
  try {
    found = { ...JSON.parse(decodeURIComponent(address.replace(/^#/, "")) || "{}") };
  } catch {
    // not one of our addresses
  }
  const { name: model, example } = models.find((each) => each.name === found.model) ?? models[0];
  const text = typeof found.text === "string" ? found.text : example;
  const lang = navigator.language.startsWith("ko") ? "ko" : "";
  return { ...START, lang, ...found, model, text };
}
