// Five scores side by side, on the same query and encoder vectors, as in attnlab/tasks/symbols/five_scores.py.
//
// Axes: Q query, D encoder vectors, S source tokens, A hidden layer of the additive scores.

import { randomNumbers } from "./random.js";
import { rounded } from "./source.js";
import { add, dot, join, Matrix, softmax, tanh } from "./vectors.js";

const SEED = 1; // of weights that the model does not have
const HIDDEN = 4; // width of the additive scores that the model does not have

/** Weights as torch draws those of a linear layer, always the same. */
function drawn(rows, columns) {
  const bound = columns ** -0.5;
  return new Matrix(randomNumbers([SEED], -bound, bound, rows * columns), rows, columns);
}

const scaled = (energies, factor) => energies?.map((energy) => energy * factor) ?? null;

/** Dot and scaled dot: the energies are null where query and vectors have different widths. */
const dots = ({ query, vectors }) => (query.length === vectors[0].length ? vectors.map((h) => dot(query, h)) : null);

/** A score's own matrix where it fits these widths; null for another score's. */
function ownMatrix({ config, weights }, score, name, rows, columns) {
  if (config.score !== score) return null;
  const matrix = weights.matrix(name);
  return (rows === null || matrix.rows === rows) && (columns === null || matrix.columns === columns) ? matrix : null;
}

function general(look) {
  const { query, vectors } = look;
  const [rows, columns] = [query.length, vectors[0].length];
  const own = ownMatrix(look, "GeneralScore", "W.weight", rows, columns);
  if (own === null && rows === columns) return { energies: dots(look), from: "identity" };
  const W = own ?? drawn(rows, columns);
  return { energies: vectors.map((h) => dot(query, W.times(h))), from: own === null ? "drawn" : "model" };
}

/** Luong's form: one matrix over the joined vectors. */
function concat(look) {
  const { query, vectors, weights } = look;
  const joined = query.length + vectors[0].length;
  const own = ownMatrix(look, "ConcatScore", "W.weight", null, joined);
  const [W, v] = own === null ? [drawn(HIDDEN, joined), drawn(1, HIDDEN).row(0)] : [own, weights.vector("v")];
  return { energies: vectors.map((h) => dot(v, tanh(W.times(join([query, h]))))), from: own === null ? "drawn" : "model" };
}

/** Bahdanau's form: a matrix for each of the two vectors. */
function additive(look) {
  const { query, vectors, weights } = look;
  const width = vectors[0].length;
  const ofQuery = ownMatrix(look, "BahdanauScore", "W.weight", null, query.length);
  const ofKeys = ownMatrix(look, "BahdanauScore", "U.weight", null, width);
  const isOwn = ofQuery !== null && ofKeys !== null;
  const v = isOwn ? weights.vector("v") : drawn(1, HIDDEN).row(0);
  const mapQuery = isOwn ? weights.linear("W") : (s) => drawn(HIDDEN, query.length).times(s);
  const U = isOwn ? null : drawn(HIDDEN, width);
  const mapKey = isOwn ? weights.linear("U") : (h) => U.times(h);
  const fromQuery = mapQuery(query);
  return { energies: vectors.map((h) => dot(v, tanh(add(fromQuery, mapKey(h))))), from: isOwn ? "model" : "drawn" };
}

function location(look) {
  const { query, positions } = look;
  const own = ownMatrix(look, "LocationScore", "W.weight", null, query.length);
  const byPosition = (own ?? drawn(Math.max(...positions) + 1, query.length)).times(query);
  return { energies: positions.map((i) => byPosition[i]), from: own === null ? "drawn" : "model" };
}

const COMPARED = [
  ["dot", "sᵀ h", (look) => ({ energies: dots(look), from: "none" })],
  ["scaled_dot", "sᵀ h / √d", (look) => ({ energies: scaled(dots(look), 1 / Math.sqrt(look.query.length)), from: "none" })],
  ["general", "sᵀ W h", general],
  ["concat", "vᵀ tanh(W [s; h])", concat],
  ["additive", "vᵀ tanh(W s + U h)", additive],
  ["location", "W s", location],
];

/**
 * Dot, scaled dot, general, concat in both forms, and location.
 *
 * @param {object} look {query (Q,), vectors (S, D), mask (S,) or null, positions (S,), config and weights of the model's score}
 */
export function fiveScores(look) {
  return COMPARED.map(([name, formula, compare]) => {
    const { energies, from } = compare(look);
    const seen = energies?.map((energy, i) => (look.mask?.[i] ?? true ? energy : -Infinity));
    const isSeen = seen?.some(Number.isFinite) ?? false;
    return {
      name, formula, weights_from: from,
      energies: energies === null ? null : rounded(energies),
      weights: isSeen ? rounded(softmax(Float64Array.from(seen))) : null,
      ...(from === "drawn" ? { seed: SEED } : {}),
    };
  });
}
