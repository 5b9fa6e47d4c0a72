// The decoders, as in attnlab/model/decoders/: each step in numbered sentences.
//
// A state is {recurrent, position, context, fed, pasts}: recurrent is that of the stack of cells; position is the step;
// context (D,), fed (F,) and pasts, what each head remembers, are null where a model does not carry them. `step` takes the embedded last
// token (E,), the state and the memory, and returns {hidden, context, token, attention, state}.

import { attentionOf } from "./attention.js";
import { StackedCell } from "./cells.js";
import { join, zeros } from "./vectors.js";

class Decoder {
  constructor(config, weights) {
    this.config = config;
    this.attention = attentionOf(config.attention, weights.of("attention"));
    this.embedding = weights.matrix("body.embedding.weight");
    this.cell = new StackedCell(config, weights.of("body.cell"));
    this.intoCell = config.into_cell;
    this.intoReadout = config.into_readout;
  }

  /** Whether a step reads the context of the step before. */
  get carriesContext() {
    return false;
  }

  /** The state before the first step, of what the bridge made of the encoded source. */
  firstState(recurrent, encoded, memory) {
    const width = encoded.outputs[0].length;
    return {
      recurrent,
      position: 0,
      context: this.carriesContext ? zeros(width) : null,
      fed: this.config.fed_size === null ? null : zeros(this.config.fed_size),
      pasts: this.attention === null ? null : this.attention.firstPasts(memory.positions),
    };
  }

  /** s_t = f(s_{t-1}, [e(y_{t-1}); fed_{t-1}; c]): the top layer's s_t (H,) and the state after. */
  advance(token, context, state) {
    const x = join([token, state.fed, context].filter((each) => each !== null));
    const recurrent = this.cell.step(x, state.recurrent);
    return { hidden: recurrent.hidden.at(-1), after: { ...state, recurrent, position: state.position + 1 } };
  }

  /** Attend for one step. */
  look(query, state, memory) {
    return this.attention.attend(query, memory, state.position, state.pasts);
  }

  /** The output of a step, and the state after it with what each head remembers. */
  output(hidden, context, token, attention, state) {
    const pasts = state.pasts === null ? null : attention.heads.map(({ past }) => past);
    return { hidden, context: this.intoReadout ? context : null, token, attention, state: { ...state, pasts } };
  }
}

/** Bahdanau's decoder. Look first, then step: the query is s_{t-1}. */
class AttendThenStep extends Decoder {
  step(token, state, memory) {
    // 1. Ask with the state before this step: query s_{t-1} -> context c_t.
    const attention = this.look(state.recurrent.hidden.at(-1), state, memory);
    const { context } = attention;
    // 2. Step with the last token and, where it goes there, the context: s_t = f(s_{t-1}, [e(y_{t-1}); c_t]).
    const { hidden, after } = this.advance(token, this.intoCell ? context : null, state);
    // 3. Hand state, token and, where it goes there, the context to the readout.
    return this.output(hidden, context, token, attention, after);
  }
}

/** Luong's decoder. Step first, then look: the query is s_t. */
class StepThenAttend extends Decoder {
  get carriesContext() {
    return this.intoCell;
  }

  step(token, state, memory) {
    // 1. Step with the last token and, where it goes there, c_{t-1}: s_t = f(s_{t-1}, [e(y_{t-1}); c_{t-1}]).
    const { hidden, after } = this.advance(token, state.context, state);
    // 2. Ask with the state after this step: query s_t -> context c_t.
    const attention = this.look(hidden, state, memory);
    const { context } = attention;
    // 3. Hand state, token and, where it goes there, the context to the readout, and store what the next step reads.
    const next = this.carriesContext ? { ...after, context } : after;
    return this.output(hidden, context, token, attention, next);
  }
}

/** The conditional GRU. Step, look, step again: the query is s'_t, halfway between s_{t-1} and s_t. */
class Conditional extends Decoder {
  constructor(config, weights) {
    super(config, weights);
    this.secondCell = new StackedCell(config, weights.of("second_cell"));
  }

  step(token, state, memory) {
    // 1. Step with the last token: s'_t = f(s_{t-1}, e(y_{t-1})).
    const { hidden: between, after } = this.advance(token, null, state);
    // 2. Ask with the state between the steps: query s'_t -> context c_t.
    const attention = this.look(between, state, memory);
    const { context } = attention;
    // 3. Step with the context: s_t = f'(s'_t, c_t).
    const recurrent = this.secondCell.step(context, after.recurrent);
    // 4. Hand state, token and, where it goes there, the context to the readout.
    return this.output(recurrent.hidden.at(-1), context, token, attention, { ...after, recurrent });
  }
}

/** Know the source by the encoder's final state alone, one vector for the whole sentence. */
class NoAttention extends Decoder {
  step(token, state, memory) {
    // 1. The context vector, where every step is given it.
    const context = this.intoCell ? memory.summary : null;
    // 2. Step with the last token: s_t = f(s_{t-1}, [e(y_{t-1}); c]).
    const { hidden, after } = this.advance(token, context, state);
    // 3. Hand state, context and token to the readout.
    return this.output(hidden, context, token, null, after);
  }
}

const DECODERS = { AttendThenStep, StepThenAttend, Conditional, NoAttention };

export const decoderOf = (config, weights) => new DECODERS[config.name](config, weights);
