// Patches, as in attnlab/model/attention/patch.py: parts of another sentence's run, in place of a sentence's own.
//
// A patch is {text, keys, values, state}; places are {position here: position there}, or "all" for each position's own of a
// sentence of the same length. A patch that is read has the sentence's {ids, mask}, too.

const pairsOf = (places) => (places === "all" ? [] : Object.entries(places).map(([here, there]) => [Number(here), there]));
const takes = (places) => places === "all" || pairsOf(places).length > 0;

/** Whether it takes what an attention looks at. */
export const needsAttention = ({ keys, values }) => takes(keys) || takes(values);
export const takesKeys = ({ keys }) => takes(keys);

/**
 * A patch with all of its fields.
 *
 * @throws an Error with a sentence for a negative position, for places of another form, and where nothing is taken
 */
export function patchOf(given) {
  const patch = { keys: {}, values: {}, state: false, ...given };
  const { keys, values } = patch;
  for (const [name, places] of [["keys", keys], ["values", values]]) {
    const isMapping = typeof places === "object" && places !== null && !Array.isArray(places);
    if (places !== "all" && !isMapping) throw new Error(`patch ${name} must be 'all' or {position here: position there}, got '${places}'`);
  }
  if (!(needsAttention(patch) || patch.state)) throw new Error("patch must take keys, values or the state of the other sentence");
  const named = [...pairsOf(keys), ...pairsOf(values)].flat();
  if (named.some((place) => place < 0)) throw new Error("patch counts positions from 0 on, got a negative number");
  return patch;
}

/** The patch with the ids of its sentence, `<eos>` included; refuses a position that the sentence does not have. */
export function readPatch(patch, ids) {
  for (const [, there] of [...pairsOf(patch.keys), ...pairsOf(patch.values)]) {
    if (there >= ids.length) {
      throw new Error(`intervene: patch must take positions below ${ids.length}, the tokens of '${patch.text}', got ${there}`);
    }
  }
  return { ...patch, ids, mask: ids.map(() => true) };
}

/** Refuse a patch that does not fit a source of this length, `<eos>` included. */
export function checkPatch({ text, keys, values, ids }, length) {
  for (const places of [keys, values]) {
    if (places === "all" && ids.length !== length) {
      throw new Error(`intervene: patch "all" needs sentences of the same length, but the source has ${length} tokens and '${text}' has ${ids.length}`);
    }
    for (const [here] of pairsOf(places)) {
      if (here >= length) throw new Error(`intervene: patch must name positions below ${length}, the source's tokens, got ${here}`);
    }
  }
}

/** The memory with the keys and values that a patch takes from the memory of another sentence. */
export function patched(memory, { keys, values }, other) {
  const projected = memory.projected.map((own, number) => ({
    keys: exchanged(keys, own.keys, other.projected[number].keys, memory, other),
    values: exchanged(values, own.values, other.projected[number].values, memory, other),
  }));
  return { ...memory, projected };
}

/** Vectors (S, A) with others (S', A) at some places. */
function exchanged(places, own, others, memory, other) {
  const pairs = places === "all" ? other.positions.map((place) => [place, place]) : pairsOf(places);
  const taken = new Map(pairs.map(([here, there]) => [here, others[other.positions.indexOf(there)]]));
  return own.map((vector, i) => taken.get(memory.positions[i]) ?? vector);
}
