// The formulas of the scores, as in attnlab/tasks/symbols/scores.py: what each makes of the keys once a sentence, and of
// query and keys.
//
// Axes: Q query, D keys, A projected keys, S source tokens, M longest source of a location.

import { arrayOf, matrixOf, numberOf, vectorOf } from "./operations.js";
import { axis, base } from "./sheet.js";

// What a score makes of the keys alone. The keys are an axis of tokens, so each is (S, ...).

const plainKeys = (sheet, score, keys) => keys;

/** W h of `general` and `scaled_luong`. */
function mappedKeys(sheet, { weights }, keys) {
  const values = matrixOf(weights.matrix("W.weight"));
  const W = sheet.weight("W", "score_W_keys", values, axis("A", values.shape[0]), keys.axes[1]);
  const Wh = sheet.compute(`W ${base(keys)}`, "mapped_keys", "linear", [W, keys]);
  sheet.formula("{} = {} {}", Wh, W, keys);
  return Wh;
}

/** W₂ h of `concat`: the part of W [s; h] that every key meets. */
function rightHalf(sheet, { weights, config }, keys) {
  const values = matrixOf(weights.matrix("W.weight"));
  const [start, stop] = [config.query_size, values.shape[1]];
  const W = sheet.weight("W", "score_W_joined", values, axis("A", values.shape[0]), axis("Q+D", stop));
  const W2 = sheet.compute("W_2", "score_W_right", "columns", [W], { axes: [W.axes[0], keys.axes[1]], start, stop });
  const Wh = sheet.compute(`W₂ ${base(keys)}`, "mapped_keys", "linear", [W2, keys]);
  sheet.formula(`{} = {}[:, ${start}:${stop}]`, W2, W);
  sheet.formula("{} = {} {}", Wh, W2, keys);
  return Wh;
}

/** A linear layer of the model as symbols: W x + b, or W x. */
function layer(sheet, weights, part, [name, biasName, about], result, x, width) {
  const W = sheet.weight(name, about, matrixOf(weights.matrix(`${part}.weight`)), width, x.axes.at(-1));
  if (!weights.has(`${part}.bias`)) {
    const product = sheet.compute(...result, "linear", [W, x]);
    sheet.formula("{} = {} {}", product, W, x);
    return product;
  }
  const b = sheet.weight(biasName, "bias", vectorOf(weights.vector(`${part}.bias`)), width);
  const product = sheet.compute(...result, "linear", [W, x, b]);
  sheet.formula("{} = {} {} + {}", product, W, x, b);
  return product;
}

/** U h + b of the additive scores. */
function additiveKeys(sheet, { weights }, keys) {
  const width = axis("A", weights.matrix("U.weight").rows);
  return layer(sheet, weights, "U", ["U", "b_U", "score_U"], [`U ${base(keys)}`, "mapped_keys"], keys, width);
}

// The energy of each key. `keys` are those from above, perhaps with a coverage added.

function dot(sheet, score, query, keys) {
  const e = sheet.compute("e", "energy", "dot", [query, keys]);
  sheet.formula("{} = {} · {}", e, query, keys);
  return e;
}

/** s · k, before it is scaled. */
function product(sheet, query, keys) {
  return sheet.compute(`${base(query)}·${base(keys)}`, "product", "dot", [query, keys]);
}

function scaledDot(sheet, score, query, keys) {
  const plain = product(sheet, query, keys);
  const root = sheet.weight("√d", "root", numberOf(Math.sqrt(query.axes[0].size)));
  const e = sheet.compute("e", "energy", "divide", [plain, root]);
  sheet.formula("{} = {} · {}", plain, query, keys);
  sheet.formula("{} = {} / {}", e, plain, root);
  return e;
}

function scaledLuong(sheet, { weights }, query, keys) {
  const plain = product(sheet, query, keys);
  const g = sheet.weight("g", "scale", numberOf(weights.number("g")));
  const e = sheet.compute("e", "energy", "multiply", [plain, g]);
  sheet.formula("{} = {} · {}", plain, query, keys);
  sheet.formula("{} = {} {}", e, g, plain);
  return e;
}

function cosine(sheet, { weights }, query, keys) {
  const unit = (x) => sheet.compute(`${base(x)}/|${base(x)}|`, "unit", "unit", [x]);
  const [unitQuery, unitKeys] = [unit(query), unit(keys)];
  const cos = sheet.compute("cos", "cosine", "dot", [unitQuery, unitKeys]);
  const g = sheet.weight("g", "scale", numberOf(weights.number("g")));
  const e = sheet.compute("e", "energy", "multiply", [cos, g]);
  sheet.formula("{} = {} / |{}|", unitQuery, query, query);
  sheet.formula("{} = {} / |{}|", unitKeys, keys, keys);
  sheet.formula("{} = {} · {}", cos, unitQuery, unitKeys);
  sheet.formula("{} = {} {}", e, g, cos);
  return e;
}

/** v · tanh(W s + U h) from W s, U h and v. */
function additive(sheet, mappedQuery, keys, v) {
  const both = sheet.compute(`${base(mappedQuery)}+${base(keys)}`, "sum_of_both", "add", [mappedQuery, keys]);
  const T = sheet.compute("T", "tanh_matrix", "tanh", [both]);
  const e = sheet.compute("e", "energy", "dot", [v, T]);
  sheet.formula("{} = {} + {}", both, mappedQuery, keys);
  sheet.formula("{} = tanh({})", T, both);
  sheet.formula("{} = {} · {}", e, v, T);
  return e;
}

const mappedQuery = (sheet, weights, query, width) =>
  layer(sheet, weights, "W", ["W", "b_W", "score_W_query"], [`W ${base(query)}`, "mapped_query"], query, width);

function bahdanau(sheet, { weights }, query, keys) {
  const [, width] = keys.axes;
  const Ws = mappedQuery(sheet, weights, query, width);
  const v = sheet.weight("v", "score_v", vectorOf(weights.vector("v")), width);
  return additive(sheet, Ws, keys, v);
}

function normedBahdanau(sheet, { weights }, query, keys) {
  const [, width] = keys.axes;
  const W = sheet.weight("W", "score_W_query", matrixOf(weights.matrix("W.weight")), width, query.axes[0]);
  const Ws = sheet.compute(`W ${base(query)}`, "mapped_query", "linear", [W, query]);
  const v = sheet.weight("v", "score_v", vectorOf(weights.vector("v")), width);
  const unitV = sheet.compute("v/|v|", "unit", "unit", [v]);
  const g = sheet.weight("g", "scale", numberOf(weights.number("g")));
  const gv = sheet.compute("g v/|v|", "scaled_v", "multiply", [unitV, g]);
  sheet.formula("{} = {} {}", Ws, W, query);
  sheet.formula("{} = {} / |{}|", unitV, v, v);
  sheet.formula("{} = {} {}", gv, g, unitV);
  return additive(sheet, Ws, keys, gv);
}

function concat(sheet, { weights, config }, query, keys) {
  // The keys have met the right half of W already.
  const W = sheet.symbols.get(sheet.named("W"));
  const stop = config.query_size;
  const W1 = sheet.compute("W_1", "score_W_left", "columns", [W], { axes: [W.axes[0], query.axes[0]], start: 0, stop });
  const Ws = sheet.compute(`W₁ ${base(query)}`, "mapped_query", "linear", [W1, query]);
  const v = sheet.weight("v", "score_v", vectorOf(weights.vector("v")), keys.axes[1]);
  sheet.formula(`{} = {}[:, 0:${stop}]`, W1, W);
  sheet.formula("{} = {} {}", Ws, W1, query);
  return additive(sheet, Ws, keys, v);
}

function location(sheet, { weights }, query, keys) {
  const values = matrixOf(weights.matrix("W.weight"));
  const W = sheet.weight("W", "score_W_location", values, axis("M", values.shape[0]), query.axes[0]);
  const Ws = sheet.compute(`W ${base(query)}`, "by_position", "linear", [W, query]);
  const e = sheet.compute("e", "energy", "gather", [Ws], { axes: keys.axes, index: [...keys.values.data] });
  sheet.formula("{} = {} {}", Ws, W, query);
  sheet.formula("{} = {}[{}]", e, Ws, keys);
  return e;
}

function uniform(sheet, score, query, keys) {
  const [{ size }] = keys.axes;
  const e = sheet.given("e", "energy", arrayOf(new Float64Array(size), size), ...keys.axes);
  sheet.formula("{} = 0", e);
  return e;
}

export const KEYS = {
  DotScore: plainKeys, ScaledDotScore: plainKeys, CosineScore: plainKeys, LocationScore: plainKeys, UniformScore: plainKeys,
  GeneralScore: mappedKeys, ScaledLuongScore: mappedKeys, ConcatScore: rightHalf, BahdanauScore: additiveKeys,
  NormedBahdanauScore: additiveKeys,
};
export const ENERGIES = {
  DotScore: dot, ScaledDotScore: scaledDot, GeneralScore: dot, ScaledLuongScore: scaledLuong, CosineScore: cosine,
  ConcatScore: concat, BahdanauScore: bahdanau, NormedBahdanauScore: normedBahdanau, LocationScore: location,
  UniformScore: uniform,
};
