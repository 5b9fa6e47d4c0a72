// One step with all of its numbers, a sheet of symbols, as in attnlab/tasks/translation (step_numbers.py, taken_step.py and the symbols of
// decoder_symbols.py, readout_symbols.py and output_symbols.py) and tasks/classification/step_numbers.py.
//
// Axes: T target tokens, S source tokens, E embedding, F what is fed, H hidden, D context, R readout, V vocabulary.

import { memoryOfHead, scorePositions } from "./attention.js";
import { attend } from "./attention_symbols.js";
import { BOS } from "./batch.js";
import { givenStates, Names, stepSymbols } from "./cell_symbols.js";
import { fiveScores } from "./five_scores.js";
import { matrixOf, vectorOf } from "./operations.js";
import { axis, base, Sheet } from "./sheet.js";
import { split } from "./vectors.js";

const WHOLE_VOCABULARY = 64; // tokens of a vocabulary that is shown whole
const LIKELIEST = 12; // tokens that are shown of a larger one, and of the step before it as many

/**
 * A step as the model itself took it.
 *
 * @param {Translator} translator
 * @param {object} model the translator's under an intervention
 * @param {object} source as `readSource` returns it
 * @param {number[]} read the tokens that the model reads, the last one in this step
 * @param {string} masking `before` or `after` the softmax
 */
export function takeStep(translator, model, source, read, masking) {
  const first = model.encode(source.ids, source.mask);
  const { memory } = first;
  let { state } = first;
  const taken = [];
  for (const token of read) {
    const step = model.step(token, state, memory);
    taken.push({ ...step, before: state });
    state = step.state;
  }
  const { logits, heads, before, query } = taken.at(-1);
  const { targetTokenizer: tokenizer } = translator;
  const shown = shownTokens(read.at(-1), logits, taken.at(-2)?.logits ?? null);
  const labels = tokenizer.tokens([...tokenizer.vocabulary.keys()]);
  const steps = heads.map((_, head) => taken.slice(0, -1).map((step) => step.heads[head].weights));
  return {
    config: translator.model.config, weights: translator.model.weights, token: read.at(-1), tokens: source.tokens,
    vocabulary: axis("V", logits.length, labels, shown), before, memory, heads, query, steps, masking,
  };
}

/** Tokens of a large vocabulary that are worth showing: the likeliest, now and in the step before, and the one that is read. */
function shownTokens(token, logits, before) {
  if (logits.length <= WHOLE_VOCABULARY) return null;
  const likeliest = (z) => [...z.keys()].sort((one, other) => z[other] - z[one]).slice(0, LIKELIEST);
  const shown = new Set([token, ...likeliest(logits), ...(before === null ? [] : likeliest(before))]);
  return [...shown].sort((one, other) => one - other);
}

/** Five scores of each head on what it was asked with; null where nothing was asked. */
export function scoresOnQuery({ config, weights, memory, query }) {
  const { attention } = config.decoder;
  return attention === null ? null : scoresOn(memory, query, attention, weights.of("decoder.attention"));
}

/** Five scores of each head on a classifier's query. */
export const scoresOnLook = ({ config, weights, memory, query }) => scoresOn(memory, query, config.attention, weights.of("attention"));

/** Several heads compare their own projections of the query and of the encoder vectors. */
function scoresOn(memory, query, config, weights) {
  const { outputs } = memory;
  const positions = scorePositions(memory);
  if (config.heads === null) return [fiveScores({ query, vectors: outputs, mask: memory.mask, positions, config, weights: scoreWeights(config, weights) })];
  const [W_Q, W_K] = [weights.linear("W_Q"), weights.linear("W_K")];
  const queries = split(W_Q(query), config.heads);
  const vectors = outputs.map((h) => split(W_K(h), config.heads)); // (S, N, size)
  return queries.map((own, number) => fiveScores({
    query: own, vectors: vectors.map((parts) => parts[number]), mask: memoryOfHead(memory, number).mask, positions, config,
    weights: scoreWeights(config, weights.of(`attentions.${number}`)),
  }));
}

/** The weights of a head's score, without the projection that may surround it. */
const scoreWeights = ({ projected }, head) => (projected ? head.of("score").of("score") : head.of("score"));

/** The sheet of a step, sentence by sentence of its decoder. */
export function sheetOf(taken) {
  const sheet = new Sheet();
  sheet.begin("before");
  const token = embed(sheet, taken);
  const stepped = DECODERS[taken.config.decoder.name](sheet, taken, token);
  predict(sheet, taken, readOut(sheet, taken, stepped));
  return sheet;
}

/** y_t−1, the embedding of the token that was written last. */
function embed(sheet, { weights, vocabulary, token }) {
  const values = matrixOf(weights.matrix("decoder.body.embedding.weight"));
  const E = sheet.weight("E", "embedding_matrix", values, vocabulary, axis("E", values.shape[1]));
  const y = sheet.compute("y_t−1", "last_token", "lookup", [E], { index: token });
  sheet.formula(`{} = {}[${vocabulary.labels[token].replaceAll("{}", "{ }")}]`, y, E);
  return y;
}

/** x_t = [y_t−1; what is fed; context], or y_t−1 where nothing else goes into the cell. */
function cellInput(sheet, taken, token, context) {
  const fed = taken.before.fed === null ? null : fedBefore(sheet, taken);
  const parts = [token, fed, context].filter((part) => part !== null);
  if (parts.length === 1) return token;
  return joinedParts(sheet, "x_t", "cell_input", parts, "I");
}

const FED = {
  AttentionalHiddenFeeding: ["s̃_t−1", "fed_hidden"],
  SoftmaxOutputFeeding: ["p_t−1", "fed_softmax"],
  ExpectedEmbeddingFeeding: ["ȳ_t−1", "fed_embedding"],
};

/** What the last step fed to this one; zeros at the first step. */
function fedBefore(sheet, { config, before, vocabulary }) {
  const width = config.input_feeding === "SoftmaxOutputFeeding" ? vocabulary : axis("F", before.fed.length);
  return sheet.given(...FED[config.input_feeding], vectorOf(before.fed), width);
}

function joinedParts(sheet, name, about, parts, letter = "J") {
  const joined = sheet.compute(name, about, "concat", parts, { axes: [joinedAxis(letter, parts)] });
  sheet.formula(`{} = [${parts.map(() => "{}").join("; ")}]`, joined, ...parts);
  return joined;
}

/** The axis of joined vectors; its places are called by the vectors and counted in each. */
function joinedAxis(letter, parts) {
  const size = parts.reduce((total, part) => total + part.axes[0].size, 0);
  if (size > WHOLE_VOCABULARY) return axis(letter, size);
  const counted = (part) => Array.from({ length: part.axes[0].size }, (_, place) => `${base(part)}${place + 1}`);
  return axis(letter, size, parts.flatMap((part) => part.axes[0].labels ?? counted(part)));
}

/** The symbols of the attention with a query; returns the context. */
function look(sheet, taken, query) {
  const config = taken.config.decoder.attention;
  return attend(sheet, {
    ...taken, config, weights: taken.weights.of("decoder.attention"), position: taken.before.position,
    pasts: taken.before.pasts,
  }, query);
}

const stepOf = (sheet, taken, x, before, names, part = "body.cell") =>
  stepSymbols(sheet, taken.config.decoder, taken.weights.of(`decoder.${part}`), x, before, names);
const states = (sheet, taken) => givenStates(sheet, taken.before.recurrent, "t−1");

const DECODERS = {
  /** Bahdanau's decoder. */
  AttendThenStep(sheet, taken, token) {
    const { into_cell: intoCell, into_readout: intoReadout } = taken.config.decoder;
    const before = states(sheet, taken);
    sheet.begin("ask_before");
    const context = look(sheet, taken, before.hidden.at(-1));
    sheet.begin(intoCell ? "step_context" : "step");
    const x = cellInput(sheet, taken, token, intoCell ? context : null);
    const after = stepOf(sheet, taken, x, before, new Names("s_t−1", "s_t"));
    return { hidden: after.hidden.at(-1), context: intoReadout ? context : null, token };
  },

  /** Luong's decoder. */
  StepThenAttend(sheet, taken, token) {
    const before = states(sheet, taken);
    const values = taken.before.context;
    const last = values === null ? null : sheet.given("c_t−1", "context_before", vectorOf(values), axis("D", values.length));
    sheet.begin(last === null ? "step" : "step_last_context");
    const x = cellInput(sheet, taken, token, last);
    const after = stepOf(sheet, taken, x, before, new Names("s_t−1", "s_t"));
    sheet.begin("ask_after");
    const context = look(sheet, taken, after.hidden.at(-1));
    return { hidden: after.hidden.at(-1), context: taken.config.decoder.into_readout ? context : null, token };
  },

  /** The conditional decoder, which steps twice. */
  Conditional(sheet, taken, token) {
    const before = states(sheet, taken);
    sheet.begin("step");
    const x = cellInput(sheet, taken, token, null);
    const between = stepOf(sheet, taken, x, before, new Names("s_t−1", "s′_t"));
    sheet.begin("ask_between");
    const context = look(sheet, taken, between.hidden.at(-1));
    sheet.begin("step_again");
    const after = stepOf(sheet, taken, context, between, new Names("s′_t", "s_t", "′"), "second_cell");
    return { hidden: after.hidden.at(-1), context: taken.config.decoder.into_readout ? context : null, token };
  },

  /** The decoder that knows the source by one vector. */
  NoAttention(sheet, taken, token) {
    const before = states(sheet, taken);
    const { summary } = taken.memory;
    const isGiven = taken.config.decoder.into_cell;
    const context = isGiven ? sheet.given("c", "one_context", vectorOf(summary), axis("D", summary.length)) : null;
    sheet.begin(isGiven ? "step_one_context" : "step");
    const x = cellInput(sheet, taken, token, context);
    const after = stepOf(sheet, taken, x, before, new Names("s_t−1", "s_t"));
    return { hidden: after.hidden.at(-1), context, token };
  },
};

/** What the output layer reads. */
function readOut(sheet, { config, weights }, { hidden, context, token }) {
  sheet.begin("readout");
  const own = weights.of("decoder.body.readout");
  const known = [hidden, context, token].filter((part) => part !== null);
  if (config.readout === "StateReadout") return hidden;
  if (config.readout === "PlainReadout") return joinedParts(sheet, "r_t", "readout", known);
  if (config.readout === "MaxoutReadout") return largest(sheet, own, hidden, context, token);
  if (config.readout === "TanhReadout") return bent(sheet, own, joinedParts(sheet, "v_t", "joined", known), ["W_r", "b_r", "r_t"], "readout");
  const v = joinedParts(sheet, "v_t", "joined", [context, hidden]);
  return bent(sheet, own, v, ["W_c", "b_c", "s̃_t"], "attentional_hidden");
}

/** tanh(W v + b). */
function bent(sheet, weights, v, [ofWeight, ofBias, ofResult], about) {
  const values = matrixOf(weights.matrix("projection.weight"));
  const width = axis("R", values.shape[0]);
  const W = sheet.weight(ofWeight, "readout_W", values, width, v.axes[0]);
  const b = sheet.weight(ofBias, "bias", vectorOf(weights.vector("projection.bias")), width);
  const product = sheet.compute("W v", "readout_sum", "linear", [W, v, b]);
  const result = sheet.compute(ofResult, about, "tanh", [product]);
  sheet.formula("{} = {} {} + {}", product, W, v, b);
  sheet.formula("{} = tanh({})", result, product);
  return result;
}

/** maxout(U s + V y + C c + b). */
function largest(sheet, weights, hidden, context, token) {
  const b = vectorOf(weights.vector("U.bias"));
  const pairs = axis("2R", b.data.length);
  const layers = [["U", hidden], ["V", token], ...(weights.has("C.weight") ? [["C", context]] : [])];
  const products = layers.map(([name, of]) => {
    const W = sheet.weight(`${name}_r`, "readout_W", matrixOf(weights.matrix(`${name}.weight`)), pairs, of.axes[0]);
    const product = sheet.compute(`${name} ${base(of)}`, "readout_product", "linear", [W, of]);
    sheet.formula("{} = {} {}", product, W, of);
    return product;
  });
  const terms = [...products, sheet.weight("b_r", "bias", b, pairs)];
  const total = sheet.compute("v_t", "readout_sum", "add", terms);
  const r = sheet.compute("r_t", "readout", "maxout", [total], { axes: [axis("R", b.data.length / 2)] });
  sheet.formula(`{} = ${terms.map(() => "{}").join(" + ")}`, total, ...terms);
  sheet.formula("{} = maxout({})", r, total);
  return r;
}

/** Logits, their softmax, and what the next step is fed. */
function predict(sheet, { config, weights, vocabulary }, output) {
  sheet.begin("output");
  const W = sheet.weight("W_y", "output_W", matrixOf(weights.matrix("output.weight")), vocabulary, output.axes[0]);
  const b = sheet.weight("b_y", "output_bias", vectorOf(weights.vector("output.bias")), vocabulary);
  const logits = sheet.compute("logits", "logits", "linear", [W, output, b]);
  const p = sheet.compute("p_t", "distribution", "softmax", [logits]);
  sheet.formula("{} = {} {} + {}", logits, W, output, b);
  sheet.formula("{} = softmax({})", p, logits);

  if (config.input_feeding === null) return;
  sheet.begin("next");
  if (config.input_feeding === "AttentionalHiddenFeeding") sheet.formula("{} → xₜ₊₁", output);
  if (config.input_feeding === "SoftmaxOutputFeeding") sheet.formula("{} → xₜ₊₁", p);
  if (config.input_feeding === "ExpectedEmbeddingFeeding") {
    const E = sheet.symbols.get("E");
    const expected = sheet.compute("ȳ_t", "fed_embedding", "weighted_sum", [p, E]);
    sheet.formula("{} = Σ {}(y) {}(y)", expected, p, E);
  }
}

/** The tokens that a model reads in a step of a target. */
export const readTokens = (target, step) => [BOS, ...target].slice(0, step + 1);

/** The sheet of a classifier's one look at its sentence. */
export function sheetOfLook({ config, weights, memory, heads, query, tokens, masking }, labels) {
  const sheet = new Sheet();
  sheet.begin("sentence");
  const name = config.query === "learned" ? "learned_query" : "sentence_query";
  const q = sheet.given("q", name, vectorOf(query), axis("Q", query.length));
  sheet.begin("look_back");
  const own = { config: config.attention, weights: weights.of("attention"), memory, heads, tokens, masking, position: 0, pasts: null, steps: [] };
  decide(sheet, weights, attend(sheet, own, q), labels);
  return sheet;
}

/** d = relu(W_d c + b_d), and the probability of the classes. */
function decide(sheet, weights, context, allLabels) {
  sheet.begin("decide");
  const dense = matrixOf(weights.matrix("dense.weight"));
  const width = axis("R", dense.shape[0]);
  const W = sheet.weight("W_d", "dense_W", dense, width, context.axes[0]);
  const b = sheet.weight("b_d", "bias", vectorOf(weights.vector("dense.bias")), width);
  const total = sheet.compute("W c", "dense_sum", "linear", [W, context, b]);
  const d = sheet.compute("d", "dense", "relu", [total]);
  sheet.formula("{} = {} {} + {}", total, W, context, b);
  sheet.formula("{} = max(0, {})", d, total);

  // Of two classes there is one number, whose sigmoid is the probability of the second.
  const areTwo = allLabels.length === 2;
  const labels = areTwo ? allLabels.slice(1) : allLabels;
  const classes = axis("C", labels.length, labels);
  const Wo = sheet.weight("W_o", "class_W", matrixOf(weights.matrix("output.weight")), classes, width);
  const bo = sheet.weight("b_o", "bias", vectorOf(weights.vector("output.bias")), classes);
  const logits = sheet.compute("logits", "class_logits", "linear", [Wo, d, bo]);
  const activation = areTwo ? "sigmoid" : "softmax";
  const p = sheet.compute("p", areTwo ? "class_probability" : "class_distribution", activation, [logits]);
  sheet.formula("{} = {} {} + {}", logits, Wo, d, bo);
  sheet.formula(`{} = ${activation}({})`, p, logits);
}
