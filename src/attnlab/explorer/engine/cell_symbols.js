// The formulas of recurrent cells, layer by layer, as in attnlab/tasks/symbols/cells.py.
//
// Axes: I input, H hidden, G gates: H of a tanh RNN, 3 H of a GRU, 4 H of an LSTM.

import { matrixOf, vectorOf } from "./operations.js";
import { axis } from "./sheet.js";

const GATES = { rnn: [""], gru: ["r", "z", "n"], lstm: ["i", "f", "C̃", "o"] };

const layerName = (layer, layers) => (layers === 1 ? "" : `^${layer + 1}`);

/** How the symbols of a cell are called: its hidden states before and after, and what stands behind the letters. */
export class Names {
  constructor(before, after, prime = "") {
    Object.assign(this, { before, after, prime });
  }

  of(letter, layer, sub = "") {
    return `${letter}${this.prime}${sub === "" ? "" : `_${sub}`}${layer}`;
  }
}

/** The states before a step, {hidden, cell} as of a stack, each a symbol. */
export function givenStates(sheet, state, time) {
  const hidden = [];
  const cell = state.cell === null ? null : [];
  state.hidden.forEach((values, layer) => {
    const [name, width] = [layerName(layer, state.hidden.length), axis("H", values.length)];
    hidden.push(sheet.given(`s_${time}${name}`, "state_before", vectorOf(values), width));
    cell?.push(sheet.given(`C_${time}${name}`, "cell_state_before", vectorOf(state.cell[layer]), width));
  });
  return { hidden, cell };
}

/** One step of all layers from the first one's input; the states after it. */
export function stepSymbols(sheet, { cell: kind, layers }, weights, x, before, names) {
  const after = { hidden: [], cell: before.cell === null ? null : [] };
  for (let layer = 0; layer < layers; layer++) {
    const own = { kind, weights: weights.of(`cells.${layer}`), names, layer: layerName(layer, layers) };
    const below = layer === 0 ? x : after.hidden[layer - 1];
    const { s, C } = CELLS[kind](sheet, own, below, before.hidden[layer], before.cell?.[layer]);
    after.hidden.push(s);
    after.cell?.push(C);
  }
  return after;
}

/** W x + b and U s + b′, which all gates share. */
function products(sheet, { kind, weights, names, layer }, x, s) {
  const [gates, size] = [GATES[kind], s.axes[0].size];
  const isLabelled = kind !== "rnn" && size <= 32;
  const labels = isLabelled ? gates.flatMap((gate) => Array.from({ length: size }, (_, place) => `${gate}${place + 1}`)) : null;
  const gatesAxis = axis("G", gates.length * size, labels);
  const W = sheet.weight(names.of("W", layer, "x"), "cell_W", matrixOf(weights.matrix("weight_ih")), gatesAxis, x.axes[0]);
  const b = sheet.weight(names.of("b", layer, "x"), "bias", vectorOf(weights.vector("bias_ih")), gatesAxis);
  const U = sheet.weight(names.of("W", layer, "s"), "cell_U", matrixOf(weights.matrix("weight_hh")), gatesAxis, s.axes[0]);
  const d = sheet.weight(names.of("b", layer, "s"), "bias", vectorOf(weights.vector("bias_hh")), gatesAxis);
  const fromX = sheet.compute(names.of("a", layer, "x"), "cell_from_x", "linear", [W, x, b]);
  const fromS = sheet.compute(names.of("a", layer, "s"), "cell_from_s", "linear", [U, s, d]);
  sheet.formula("{} = {} {} + {}", fromX, W, x, b);
  sheet.formula("{} = {} {} + {}", fromS, U, s, d);
  return [fromX, fromS];
}

function gate(sheet, name, about, sums, number, width, activation = "sigmoid") {
  const { size } = width;
  const found = sheet.compute(name, about, "gate", sums, { axes: [width], start: number * size, size, function: activation });
  sheet.formula(`{} = ${activation}({} + {})`, found, ...sums);
  return found;
}

/** s_t = tanh(W x + b + U s + b′). */
function rnn(sheet, own, x, s) {
  const sums = products(sheet, own, x, s);
  return { s: gate(sheet, `${own.names.after}${own.layer}`, "state", sums, 0, s.axes[0], "tanh") };
}

/** s_t = (1 − z) n + z s. */
function gru(sheet, own, x, s) {
  const { names, layer } = own;
  const [width] = s.axes;
  const sums = products(sheet, own, x, s);
  const r = gate(sheet, names.of("r", layer), "reset_gate", sums, 0, width);
  const z = gate(sheet, names.of("z", layer), "update_gate", sums, 1, width);
  const [fromX, fromS] = sums;
  const n = sheet.compute(names.of("n", layer), "candidate", "candidate", [fromX, r, fromS], { axes: [width], start: 2 * width.size });
  sheet.formula("{} = tanh({} + {} ∘ {})", n, fromX, r, fromS);
  const after = sheet.compute(`${names.after}${layer}`, "state", "blend", [n, z, s]);
  sheet.formula("{} = (1 − {}) ∘ {} + {} ∘ {}", after, z, n, z, s);
  return { s: after };
}

/** C_t = f C + i C̃ and s_t = o tanh(C_t). */
function lstm(sheet, own, x, s, C) {
  const { names, layer } = own;
  const [width] = s.axes;
  const sums = products(sheet, own, x, s);
  const i = gate(sheet, names.of("i", layer, "t"), "input_gate", sums, 0, width);
  const f = gate(sheet, names.of("f", layer), "forget_gate", sums, 1, width);
  const g = gate(sheet, names.of("C̃", layer), "candidate", sums, 2, width, "tanh");
  const o = gate(sheet, names.of("o", layer), "output_gate", sums, 3, width);
  const memory = sheet.compute(`${names.after.replaceAll("s", "C")}${layer}`, "cell_state", "two_products", [f, C, i, g]);
  sheet.formula("{} = {} ∘ {} + {} ∘ {}", memory, f, C, i, g);
  const after = sheet.compute(`${names.after}${layer}`, "state", "gated_tanh", [o, memory]);
  sheet.formula("{} = {} ∘ tanh({})", after, o, memory);
  return { s: after, C: memory };
}

const CELLS = { rnn, gru, lstm };
