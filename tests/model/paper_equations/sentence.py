"""A whole model on one sentence pair: from tokens to log-probabilities, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from paper_equations import alignments, histories
from paper_equations.attention import Attention, attend
from paper_equations.bridges import BRIDGES
from paper_equations.cells import State, Weights, part, stack_step
from paper_equations.encoder import Encoded, encode
from paper_equations.normalisers import log_softmax
from paper_equations.readouts import READOUTS

BOS, EOS = 2, 3
HARD = (
    "hard_attention",
    "hard_monotonic_attention",
    "first_order_hard_attention",
    "first_order_hard_attention_both_ways",
)


@dataclass
class Computed:
    log_probs: list[np.ndarray]  # (V,) a step
    weights: list[np.ndarray]  # (S,) a step, the mean over the heads; empty without attention
    coverage_loss: float
    # Of an output that sums over alignments: p(a_t = i | a_{t-1} = j) and log p(. | a_t = i)
    transitions: list[np.ndarray] = field(default_factory=list)  # (S, S) a step
    emissions: list[np.ndarray] = field(default_factory=list)  # (S, V) a step


@dataclass(frozen=True)
class Model:
    """The choices that matter to a sentence alone, named as the tests' `tiny_model` names them."""

    cell: str = "gru"
    decoder_cell: str | None = None
    bidirectional: bool = True
    merge: str = "concatenate"
    reverse_source: bool = False
    layers: int = 1
    decoder_layers: int | None = None
    bridge: str = "linear"
    decoder: str = "attend_then_step"
    attention: str | None = "bahdanau"
    projection: int | None = None
    normaliser: str = "softmax"
    scope: str = "global"
    history: str = "none"
    heads: int | None = None
    gate: str = "none"
    context: str = "cell_and_readout"
    readout: str = "tanh"
    output: str = "linear"
    input_feeding: str = "none"

    def read(self, w: Weights, source: list[int]) -> tuple[Encoded, State]:
        """The encoded source, `<eos>` put behind it, and the decoder's first state."""
        encoded = encode(
            part(w, "encoder."),
            self.cell,
            self.layers,
            self.bidirectional,
            self.merge,
            self.reverse_source,
            [*source, EOS],
        )
        kind, layers = self.decoder_cell or self.cell, self.decoder_layers or self.layers
        size = w["decoder.body.cell.cells.0.weight_hh"].shape[1]
        return encoded, BRIDGES[self.bridge](
            part(w, "bridge."), encoded, layers, size, kind == "lstm"
        )

    def compute(self, w: Weights, source: list[int], target: list[int]) -> Computed:
        """Feed the target after `<bos>`, token by token."""
        encoded, state = self.read(w, source)
        body = part(w, "decoder.body.")
        embedding = body["embedding.weight"]
        computed = Computed([], [], 0.0)
        c = np.zeros(encoded.outputs.shape[1])  # c_0 = 0
        fed = np.zeros(self._fed_size(w))
        n = len(encoded.outputs)
        pasts = [histories.first(self.history, n) for _ in range(self.heads or 1)]
        after = pasts
        for t, token in enumerate([BOS, *target]):
            y = embedding[token]
            # Bahdanau et al. 2015, 3.1, asks with s_{t-1}; Luong et al. 2015, 3, with s_t, and so
            # its cell can be
            # given no more than c_{t-1}.
            if self.decoder == "attend_then_step":
                c, weights, after = self._look(w, state, encoded.outputs, t, pasts)
            elif self.decoder == "no_attention":
                c, weights = encoded.final.hidden[-1], []
            conditional = self.decoder == "conditional_gru"
            into_cell = [c] if self.context in self._into_cell and not conditional else []
            kind = self.decoder_cell or self.cell
            state = stack_step(
                part(body, "cell.cells."), kind, np.concatenate([y, fed, *into_cell]), state
            )
            if self.decoder == "step_then_attend":
                c, weights, after = self._look(w, state, encoded.outputs, t, pasts)
            if conditional:  # Nematus, 2: ask, and let a second cell step with the context
                c, weights, after = self._look(w, state, encoded.outputs, t, pasts)
                state = stack_step(part(w, "decoder.second_cell.cells."), kind, c, state)
            s = state.hidden[-1]
            into_readout = c if self.context in self._into_readout else None
            readout = READOUTS[self.readout](part(body, "readout."), s, into_readout, y)
            if self.output in HARD:
                transition = alignments.transition_of(
                    self.output, part(w, "output."), weights[0], s, encoded.outputs
                )
                computed.transitions.append(transition)
                computed.emissions.append(self._emissions(w, s, encoded.outputs, y))
                log_probs = alignments.next_log_probs(
                    computed.transitions, computed.emissions, target[:t]
                )
            else:
                log_probs = self._log_probs(w, readout, [s, y], into_readout, weights, source)
            computed.log_probs.append(log_probs)
            # Luong et al. 2015, 3.3; or what the step expected of the next token.
            if self.input_feeding != "none":
                p = np.exp(log_probs)
                fed = {
                    "attentional_hidden": readout,
                    "expected_embedding": p @ embedding,
                    "softmax_output": p,
                }[self.input_feeding]
            if weights:
                computed.weights.append(np.mean(weights, axis=0))
            if self.history == "coverage":
                computed.coverage_loss += self._looked_again(weights, pasts)
            pasts = after
        if self.output in HARD:
            known = computed.transitions, computed.emissions, [*target, EOS]
            computed.weights = alignments.posterior(*known)
        return computed

    _into_cell = (
        "cell",
        "cell_and_readout",
        "previous_in_cell",
        "readout_and_previous_in_cell",
        "every_step",
    )
    _into_readout = ("readout", "cell_and_readout", "readout_and_previous_in_cell", "every_step")

    def _look(self, w: Weights, state: State, outputs, t: int, pasts: list[histories.Past]):
        assert self.attention is not None
        choice = Attention(
            self.attention,
            self.projection is not None,
            self.normaliser,
            self.scope,
            heads=self.heads,
            history=self.history,
            gate=self.gate,
        )
        return attend(choice, part(w, "decoder.attention."), state.hidden[-1], outputs, t, pasts)

    def _emissions(self, w: Weights, s, outputs, y):
        """log p(. | a_t = i) of each source token i: (S, V)."""
        readout = part(part(w, "decoder.body."), "readout.")
        weight, bias = w[f"{self._vocabulary}.weight"], w[f"{self._vocabulary}.bias"]
        readouts = [READOUTS[self.readout](readout, s, h, y) for h in outputs]
        return np.array([log_softmax(weight @ r + bias) for r in readouts])

    @property
    def _vocabulary(self) -> str:
        """The layer from the readout to the vocabulary, as the weights name it."""
        return "output" if self.output == "linear" else "output.generator"

    def _log_probs(self, w: Weights, readout, state_and_token, c, weights, source: list[int]):
        """log P of the next token: written, or (See et al. 2017, equation 9) copied as well.

        Or copied alone (Vinyals et al. 2015, equation 3).
        """
        if self.output == "pointer_network":
            p = np.zeros(w["decoder.body.embedding.weight"].shape[0])
            for token, weight in zip([*source, EOS], np.mean(weights, axis=0), strict=True):
                p[token] += weight
            return np.log(np.maximum(p, np.finfo(p.dtype).tiny))
        weight = w[f"{self._vocabulary}.weight"]
        written = log_softmax(weight @ readout + w[f"{self._vocabulary}.bias"])
        if self.output == "linear":
            return written
        known = [*state_and_token] if c is None else [c, *state_and_token]
        gate = w["output.gate.weight"][0] @ np.concatenate(known) + w["output.gate.bias"][0]
        p_gen = 1 / (1 + np.exp(-gate))
        p = p_gen * np.exp(written)
        for token, weight in zip([*source, EOS], np.mean(weights, axis=0), strict=True):
            p[token] += (1 - p_gen) * weight
        return np.log(p)

    def _looked_again(self, weights, pasts: list[histories.Past]) -> float:
        """See et al. 2017, equation 12: sum_i min(a_i, c_i), here the mean over the heads."""
        return float(
            np.mean(
                [np.minimum(a, c["weights"]).sum() for a, c in zip(weights, pasts, strict=True)]
            )
        )

    def _fed_size(self, w: Weights) -> int:
        vocabulary_size, embedding_size = w["decoder.body.embedding.weight"].shape
        readout_size = 0
        if self.output != "pointer_network":
            readout_size = w[f"{self._vocabulary}.weight"].shape[1]
        sizes = {
            "attentional_hidden": readout_size,
            "expected_embedding": embedding_size,
            "none": 0,
        }
        return sizes.get(self.input_feeding, vocabulary_size)
