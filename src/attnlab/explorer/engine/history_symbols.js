// The formulas of histories, as in attnlab/tasks/symbols/histories.py.
//
// Axes: S source tokens, T steps before this one, A projected keys, K filters, D values, Q query.

import { LEAST } from "./histories.js";
import { matrixOf, numberOf, rowsOf, vectorOf } from "./operations.js";
import { axis, base } from "./sheet.js";

/** α_t−1 (S,), as it stands in the record. */
const weightsBefore = (sheet, { weights }, tokens) => sheet.given("α_t−1", "last_weights", vectorOf(weights), tokens);

const KEYS = {
  /** The keys with w κ added, κ being the sum of the weights of all steps before. */
  Coverage(sheet, { weights, steps }, keys) {
    const [tokens, width] = keys.axes;
    const before = sheet.given("α_1…t−1", "weights_before", rowsOf(steps, tokens.size), axis("T", steps.length), tokens);
    const kappa = sheet.compute("κ_t", "coverage", "sum_of_rows", [before]);
    const w = sheet.weight("w", "coverage_w", vectorOf(weights.vector("w.weight")), width);
    const seen = sheet.compute("w κ", "covered", "outer", [kappa, w]);
    const covered = sheet.compute(`${base(keys)}+w κ`, "covered_keys", "add", [keys, seen]);
    sheet.formula("{} = Σ {}", kappa, before);
    sheet.formula("{} = {} {}", seen, w, kappa);
    sheet.formula("{} = {} + {}", covered, keys, seen);
    return covered;
  },
  LastWeights(sheet, { weights, past }, keys) {
    const before = weightsBefore(sheet, past, keys.axes[0]);
    const w = sheet.weight("w", "history_w", vectorOf(weights.vector("w.weight")), keys.axes[1]);
    const seen = sheet.compute("w α", "remembered", "outer", [before, w]);
    const changed = sheet.compute(`${base(keys)}+w α`, "keys_with_history", "add", [keys, seen]);
    sheet.formula("{} = {} {}", seen, w, before);
    sheet.formula("{} = {} + {}", changed, keys, seen);
    return changed;
  },
  LocationSensitive(sheet, { weights, past }, keys) {
    const before = weightsBefore(sheet, past, keys.axes[0]);
    const filters = matrixOf(weights.matrix("F"));
    const [count, width] = filters.shape;
    const neighbours = axis("r", width);
    const around = sheet.compute("α_±", "weights_around", "around", [before], { axes: [keys.axes[0], neighbours], width });
    const F = sheet.weight("F", "history_F", filters, axis("K", count), neighbours);
    const f = sheet.compute("φ_t", "locations", "linear", [F, around]);
    const U = sheet.weight("U_φ", "history_U", matrixOf(weights.matrix("U.weight")), keys.axes[1], F.axes[0]);
    const seen = sheet.compute("U φ", "remembered", "linear", [U, f]);
    const changed = sheet.compute(`${base(keys)}+U φ`, "keys_with_history", "add", [keys, seen]);
    const reach = Math.floor(width / 2);
    sheet.formula(`{} = {}(i−${reach} … i+${reach})`, around, before);
    sheet.formula("{} = {} {}", f, F, around);
    sheet.formula("{} = {} {}", seen, U, f);
    sheet.formula("{} = {} + {}", changed, keys, seen);
    return changed;
  },
};

/** The keys as the score of this step reads them; look is {config, weights, past, steps} of a head's history. */
export const withHistory = (sheet, look, keys) => KEYS[look.config.name]?.(sheet, look, keys) ?? keys;

/** Whether a history makes other weights than the normaliser. */
export const makesWeights = ({ name }) => !(name in KEYS);

/** The weights (S,) that a history makes of scores; `normalised(name, about)` puts those of the normaliser down. */
export function weighByHistory(sheet, { config, weights, past }, scores, normalised, name, about) {
  if (config.name === "Monotonic") return readOn(sheet, config, weights, past, scores, name, about);
  if (config.name === "Mocha") return lookAtChunks(sheet, config, weights, past, scores, name, about);
  return moveForward(sheet, past, scores, normalised, name, about);
}

/** α = ((1 − u) α_t−1(i) + u α_t−1(i−1)) y / Σ. */
function moveForward(sheet, past, scores, normalised, name, about) {
  const y = normalised("y", "weights_before_change");
  const before = weightsBefore(sheet, past, scores.axes[0]);
  const shifted = sheet.compute("α_i−1", "weights_one_before", "one_before", [before]);
  const u = sheet.given("u_t−1", "transition", numberOf(past.transition));
  const moved = sheet.compute("α_m", "moved_weights", "blend", [before, u, shifted]);
  const reached = sheet.compute("α_m y", "reached_weights", "multiply", [moved, y]);
  const whole = sheet.compute("Σ_m", "sum_of_weights", "total", [reached]);
  sheet.formula("{} = {}(i−1)", shifted, before);
  sheet.formula("{} = (1 − {}) {} + {} {}", moved, u, before, u, shifted);
  sheet.formula("{} = {} ∘ {}", reached, moved, y);
  sheet.formula("{} = Σ {}", whole, reached);
  if (whole.values.data[0] > LEAST) {
    const alpha = sheet.compute(name, about, "divide", [reached, whole]);
    sheet.formula("{} = {} / {}", alpha, reached, whole);
    return alpha;
  }
  const alpha = sheet.compute(name, about, "add", [y]); // next to nothing that may be seen can be reached
  sheet.formula("{} = {}", alpha, y);
  return alpha;
}

/** The first token with e + r ≥ 0 from where the last step stopped, or the mean over all choices. */
function readOn(sheet, config, weights, past, scores, name, about) {
  const before = weightsBefore(sheet, past, scores.axes[0]);
  return stop(sheet, config, weights, scores, before, name, about);
}

/** Where a step stops, of its scores and of where the last one did: (S,). */
function stop(sheet, { hard }, weights, scores, before, name, about) {
  const r = sheet.weight("r_m", "monotonic_bias", numberOf(weights.number("r")));
  const energy = sheet.compute("e+r_m", "choice_energy", "add", [scores, r]);
  const p = sheet.compute("p", "choice_probability", "sigmoid", [energy]);
  sheet.formula("{} = {} + {}", energy, scores, r);
  sheet.formula("{} = sigmoid({})", p, energy);
  const stops = sheet.compute(name, about, hard ? "first_chosen" : "mean_choice", [energy, before]);
  sheet.formula(hard ? "{} = first({} ≥ 0, {})" : "{} = mean({}, {})", stops, energy, before);
  return stops;
}

/** The chunk energies ε = v · tanh(W q + U h) of a query and values (S,), of a history that has them. */
export function compareInChunks(sheet, { config, weights }, query, values) {
  if (config.name !== "Mocha") return;
  const own = weights.of("chunk_score");
  const [ofQuery, ofValues, ofBoth] = [matrixOf(own.matrix("W.weight")), matrixOf(own.matrix("U.weight")), vectorOf(own.vector("v"))];
  const width = axis("A", ofQuery.shape[0]);
  const W = sheet.weight("W_ε", "chunk_W", ofQuery, width, query.axes[0]);
  const U = sheet.weight("U_ε", "chunk_U", ofValues, width, values.axes[1]);
  const v = sheet.weight("v_ε", "chunk_v", ofBoth, width);
  const mappedQuery = sheet.compute(`W_ε ${base(query)}`, "chunk_query", "linear", [W, query]);
  const mappedValues = sheet.compute(`U_ε ${base(values)}`, "chunk_values", "linear", [U, values]);
  const both = sheet.compute("S_ε", "sum_of_both", "add", [mappedQuery, mappedValues]);
  const T = sheet.compute("T_ε", "tanh_matrix", "tanh", [both]);
  const energies = sheet.compute("ε_t", "chunk_energy", "dot", [v, T]);
  sheet.formula("{} = {} {}", mappedQuery, W, query);
  sheet.formula("{} = {} {}", mappedValues, U, values);
  sheet.formula("{} = {} + {}", both, mappedQuery, mappedValues);
  sheet.formula("{} = tanh({})", T, both);
  sheet.formula("{} = {} · {}", energies, v, T);
}

/** The softmax of the chunk energies over each chunk, in the mean over where it ends. */
function lookAtChunks(sheet, config, weights, past, scores, name, about) {
  const before = sheet.given("z_t−1", "last_stop", vectorOf(past.weights), scores.axes[0]);
  const stops = stop(sheet, config, weights, scores, before, "z_t", "stop");
  let energies = sheet.symbols.get(sheet.named("ε_t"));
  if (scores.operation === "mask") {
    const visible = scores.of[1];
    const masked = sheet.compute("ε′", "masked_energy", "mask", [energies, visible]);
    sheet.formula("{} = {};  {} = 0 ⇒ −∞", masked, energies, visible);
    energies = masked;
  }
  const alpha = sheet.compute(name, about, "chunk_softmax", [stops, energies], { size: config.chunk_size });
  sheet.formula("{} = chunks({}, {})", alpha, stops, energies);
  return alpha;
}

/** What a head remembers after the step, beside its weights. */
export function remember(sheet, { config, weights }, query, alpha, context) {
  if (config.name === "Coverage") {
    const kappa = sheet.symbols.get(sheet.named("κ_t"));
    const after = sheet.compute("κ_t+1", "coverage", "add", [kappa, alpha]);
    sheet.formula("{} = {} + {}", after, kappa, alpha);
  }
  if (config.name === "ForwardWithAgent") askAgent(sheet, weights, query, context);
}

/** u_t = sigmoid(v · tanh(W [c; q] + b) + b′). */
function askAgent(sheet, weights, query, context) {
  const joinedAxis = axis("D+Q", context.axes[0].size + query.axes[0].size);
  const joined = sheet.compute("[c; q]", "agent_input", "concat", [context, query], { axes: [joinedAxis] });
  const values = matrixOf(weights.matrix("W.weight"));
  const width = axis("A", values.shape[0]);
  const W = sheet.weight("W_u", "agent_W", values, width, joinedAxis);
  const b = sheet.weight("b_u", "agent_bias", vectorOf(weights.vector("W.bias")), width);
  const mapped = sheet.compute("W_u [c; q]", "agent_mapped", "linear", [W, joined, b]);
  const hidden = sheet.compute("g_u", "agent_hidden", "tanh", [mapped]);
  const v = sheet.weight("v_u", "agent_v", vectorOf(weights.vector("v.weight")), width);
  const bias = sheet.weight("b′_u", "agent_bias", numberOf(weights.number("v.bias")));
  const product = sheet.compute("v·g_u", "agent_product", "dot", [v, hidden]);
  const total = sheet.compute("v·g_u+b′", "agent_sum", "add", [product, bias]);
  const u = sheet.compute("u_t", "transition", "sigmoid", [total]);
  sheet.formula("{} = [{}; {}]", joined, context, query);
  sheet.formula("{} = {} {} + {}", mapped, W, joined, b);
  sheet.formula("{} = tanh({})", hidden, mapped);
  sheet.formula("{} = {} · {}", product, v, hidden);
  sheet.formula("{} = {} + {}", total, product, bias);
  sheet.formula("{} = sigmoid({})", u, total);
}
