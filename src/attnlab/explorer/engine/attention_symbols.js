// The formulas of an attention, as in attnlab/tasks/symbols: attention.py (projections, energies and context, head by head),
// scopes.py (mask and window), weights.py and gates.py.
//
// Axes: S source tokens, T steps before this one, Q query, D values, A keys, P projection.

import { memoryOfHead, scorePositions } from "./attention.js";
import { compareInChunks, makesWeights, remember, weighByHistory, withHistory } from "./history_symbols.js";
import { normaliserOf } from "./normalisers.js";
import { matrixOf, numberOf, rowsOf, vectorOf } from "./operations.js";
import { axis } from "./sheet.js";
import { ENERGIES, KEYS } from "./score_symbols.js";
import { checkPositions } from "./scores.js";

/**
 * The symbols of an attention, for a query of the sheet; returns the context's.
 *
 * @param {object} look of the model back at its source: {config, weights} of the attention; tokens (S,), with
 *   the pads; memory; position of the step; heads, the numbers that each head computed; pasts, what each
 *   head remembers, null without a history; steps, of each head its weights in the steps before (T, S); masking, `before` or
 *   `after` the softmax
 */
export function attend(sheet, look, query) {
  const tokens = axis("S", look.tokens.length, look.tokens);
  const { outputs } = look.memory;
  const h = sheet.given("h", "encoder_vectors", rowsOf(outputs), tokens, axis("D", outputs[0].length));
  if (look.config.heads === null) return attendWithHead(sheet, look, look.weights, 0, query, h, h);
  return attendWithHeads(sheet, look, query, h);
}

/** concat(head_1, ..., head_N) W_O. */
function attendWithHeads(sheet, look, query, h) {
  const contexts = [];
  const { config, weights } = look;
  const size = weights.matrix("W_Q.weight").rows / config.heads;
  for (let number = 0; number < config.heads; number++) {
    sheet.head = number;
    sheet.begin("head", { sameNumber: true });
    const [q, k, v] = [["Q", query], ["K", h], ["V", h]].map(([name, of]) => {
      const all = matrixOf(weights.matrix(`W_${name}.weight`));
      const own = rowsOf(Array.from({ length: size }, (_, i) => all.data.subarray((number * size + i) * all.shape[1], (number * size + i + 1) * all.shape[1])));
      const W = sheet.weight(`W_${name}`, `head_W_${name}`, own, axis("P", size), of.axes.at(-1));
      // Small letters are vectors, great ones matrices; v is a weight of some scores.
      const called = name === "Q" ? "q" : name;
      const projected = sheet.compute(called, `head_${name}`, "linear", [W, of]);
      sheet.formula("{} = {} {}", projected, W, of);
      return projected;
    });
    const own = { ...look, memory: memoryOfHead(look.memory, number) };
    contexts.push(attendWithHead(sheet, own, weights.of(`attentions.${number}`), number, q, k, v));
  }

  sheet.head = null;
  sheet.begin("join_heads", { sameNumber: true });
  const joinedAxis = axis("N·P", contexts.reduce((total, context) => total + context.axes[0].size, 0));
  const joined = sheet.compute("c_0…N−1", "joined_heads", "concat", contexts, { axes: [joinedAxis] });
  const W = sheet.weight("W_O", "head_W_O", matrixOf(weights.matrix("W_O.weight")), h.axes[1], joinedAxis);
  const context = sheet.compute("c_t", "context", "linear", [W, joined]);
  sheet.formula(`{} = [${contexts.map(() => "{}").join("; ")}]`, joined, ...contexts);
  sheet.formula("{} = {} {}", context, W, joined);
  return context;
}

/** The symbols of one head; returns its context. */
function attendWithHead(sheet, look, weights, number, asking, h, values) {
  const { config, memory } = look;
  let [query, keys, own] = [asking, h, weights.of("score")];
  // 1. What is compared: projections, what the score makes of the keys, and what was seen.
  if (config.score === "LocationScore" || config.score === "UniformScore") {
    // Behind the softmax the mask lets it take the pads in: where they have no energy, they are refused.
    const positions = look.masking === "after" ? memory.positions : scorePositions(memory);
    if (config.score === "LocationScore") checkPositions(positions, own.matrix("W.weight").rows);
    keys = sheet.given("i", "positions", vectorOf(positions), values.axes[0]);
  }
  if (config.projected) {
    [query, keys] = project(sheet, own, query, keys);
    own = own.of("score");
  }
  const score = { weights: own, config };
  keys = KEYS[config.score](sheet, score, keys);
  const history = look.pasts === null ? null
    : { config: config.history, weights: weights.of("history"), past: look.pasts[number], steps: look.steps[number] };
  if (history !== null) keys = withHistory(sheet, history, keys);
  // 2. The energies.
  const e = ENERGIES[config.score](sheet, score, query, keys);
  if (history !== null) compareInChunks(sheet, history, asking, values);
  // 3. The mask, the weights and the context.
  const { visible, emphasis } = see(sheet, look, weights, asking, values.axes[0]);
  const normaliser = normaliserOf(config.normaliser, weights.of("normaliser"));
  const alpha = weigh(sheet, look, number, normaliser, history, e, visible, emphasis);
  const sum = sheet.compute("Σα", "sum_of_weights", "total", [alpha]);
  sheet.formula("{} = Σ {}", sum, alpha);
  const context = sheet.compute(sheet.head === null ? "c_t" : "c", "context", "weighted_sum", [alpha, values]);
  sheet.formula("{} = Σ {} {}", context, alpha, values);
  if (history !== null) remember(sheet, history, asking, alpha, context);
  return context;
}

/** q′ = W_q s and k′ = W_k h. */
function project(sheet, weights, query, keys) {
  const [P, R] = [matrixOf(weights.matrix("P.weight")), matrixOf(weights.matrix("R.weight"))];
  const width = axis("P", P.shape[0]);
  const Wq = sheet.weight("W_q", "projection_W_q", P, width, query.axes[0]);
  const Wk = sheet.weight("W_k", "projection_W_k", R, width, keys.axes[1]);
  const projectedQuery = sheet.compute("q′", "projected_query", "linear", [Wq, query]);
  const projectedKeys = sheet.compute("k′", "projected_keys", "linear", [Wk, keys]);
  sheet.formula("{} = {} {}", projectedQuery, Wq, query);
  sheet.formula("{} = {} {}", projectedKeys, Wk, keys);
  return [projectedQuery, projectedKeys];
}

/** What may be seen (S,), 1 or 0, and the factors of a local scope (S,); null for none. */
function see(sheet, { config, memory, position }, weights, query, tokens) {
  const { scope } = config;
  const visible = memory.mask === null ? null : sheet.given("m", "mask", vectorOf(memory.mask.map(Number)), tokens);
  if (scope.name === "GlobalScope") return { visible, emphasis: null };

  const places = sheet.given("pos", "positions", vectorOf(memory.positions), tokens);
  const { length } = memory;
  if (scope.name === "LocalM") {
    const centre = sheet.given("p_c", "centre", numberOf(Math.min(position, length - 1)));
    return { visible: joinedMask(sheet, visible, window(sheet, scope, places, centre)), emphasis: null };
  }

  const own = weights.of("scope");
  const hidden = axis("Q", query.axes[0].size);
  const W = sheet.weight("W_p", "scope_W", matrixOf(own.matrix("W.weight")), hidden, query.axes[0]);
  const v = sheet.weight("v_p", "scope_v", vectorOf(own.vector("v")), hidden);
  const mapped = sheet.compute("u", "scope_mapped", "linear", [W, query]);
  const bent = sheet.compute("tanh u", "scope_tanh", "tanh", [mapped]);
  const product = sheet.compute("v·tanh u", "scope_product", "dot", [v, bent]);
  const share = sheet.compute("σ", "scope_share", "sigmoid", [product]);
  const centre = sheet.compute("p_c", "centre", "centre", [share], { length });
  const inside = sheet.compute("inside", "window", "window", [places, centre], { width: scope.width });
  const emphasis = sheet.compute("g_t", "emphasis", "gaussian", [places, centre], { sigma: scope.width / 2 });
  sheet.formula("{} = {} {}", mapped, W, query);
  sheet.formula("{} = tanh({})", bent, mapped);
  sheet.formula("{} = {} · {}", product, v, bent);
  sheet.formula("{} = sigmoid({})", share, product);
  sheet.formula(`{} = min(${length} {}, ${length - 1})`, centre, share);
  sheet.formula(`{} = |{} − {}| ≤ ${scope.width}`, inside, places, centre);
  sheet.formula("{} = exp(−({} − {})² / 2σ²)", emphasis, places, centre);
  return { visible: joinedMask(sheet, visible, inside), emphasis };
}

function window(sheet, scope, places, centre) {
  const inside = sheet.compute("inside", "window", "window", [places, centre], { width: scope.width });
  sheet.formula(`{} = |{} − {}| ≤ ${scope.width}`, inside, places, centre);
  return inside;
}

function joinedMask(sheet, mask, inside) {
  if (mask === null) return inside;
  const both = sheet.compute("m′", "mask_and_window", "multiply", [mask, inside]);
  sheet.formula("{} = {} ∘ {}", both, mask, inside);
  return both;
}

/** The weights: the normaliser, with the mask before or after it, and the scope's factors. */
function weigh(sheet, look, number, normaliser, history, e, visible, emphasis) {
  const { config, memory, masking, heads } = look;
  let scores = e;
  if (visible !== null && masking === "before") {
    scores = sheet.compute("e′", "masked_energy", "mask", [e, visible]);
    sheet.formula("{} = {};  {} = 0 ⇒ −∞", scores, e, visible);
  }
  if (isChanged(memory.intervention, scores)) {
    const alpha = sheet.opaque("α", "weights", vectorOf(heads[number].weights), e.axes, [scores], "change");
    sheet.formula("{} = change({})", alpha, scores);
    return alpha;
  }

  const stages = ["normalise"];
  if (visible !== null && masking === "after") stages.push("hide");
  if (emphasis !== null) stages.push("favour");
  if (emphasis !== null && config.scope.renormalise) stages.push("share out");
  // The last of them makes α; those before have names of their own.
  return stages.reduce((weights, stage, i) => {
    const isLast = i === stages.length - 1;
    const name = isLast ? "α" : ["a", "a′", "a″"][i];
    const about = isLast ? "weights" : "weights_before_change";
    if (stage === "normalise") {
      const normalised = (itsName, itsAbout) => normalise(sheet, normaliser, weights, itsName, itsAbout);
      if (history === null || !makesWeights(history.config)) return normalised(name, about);
      return weighByHistory(sheet, history, weights, normalised, name, about);
    }
    if (stage === "share out") {
      const whole = sheet.compute("Σa", "sum_of_weights", "total", [weights]);
      const found = sheet.compute(name, about, "divide", [weights, whole]);
      sheet.formula("{} = Σ {}", whole, weights);
      sheet.formula("{} = {} / {}", found, weights, whole);
      return found;
    }
    const factors = stage === "hide" ? visible : emphasis;
    const found = sheet.compute(name, about, "multiply", [weights, factors]);
    sheet.formula("{} = {} ∘ {}", found, weights, factors);
    return found;
  }, scores);
}

/** The weights that a normaliser makes of the scores. */
function normalise(sheet, { operation, formula, learned, number, settings }, scores, name, about) {
  const of = [scores];
  if (learned) of.push(sheet.weight(learned[1], learned[2], numberOf(number)));
  const found = sheet.compute(name, about, operation, of, settings);
  sheet.formula(formula, found, ...of);
  return found;
}

/** Whether an intervention puts other weights in the place of the normaliser's. */
function isChanged(intervention, scores) {
  if (!scores.values.data.some(Number.isFinite)) return true;
  if (intervention === null) return false;
  const { kind, weights, temperature } = intervention;
  return kind !== null || Object.keys(weights).length > 0 || temperature !== 1;
}
