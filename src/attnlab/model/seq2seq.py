"""Encode, unroll over the target, project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from attnlab.batch import BOS, PAD, Batch, Padding
from attnlab.config.part import Part
from attnlab.model.attention.attention import MultiHeadAttention, remember
from attnlab.model.attention.draws import Draws
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.mechanism import LinearProjection, mechanism_of
from attnlab.model.attention.memory import Memory, count_positions
from attnlab.model.attention.patch import Patch
from attnlab.model.attention.score import Score
from attnlab.model.bridges import Bridge
from attnlab.model.decoders.decoder import Decoder
from attnlab.model.decoders.step import DecoderState, SelectsRows, StepOutput, Token
from attnlab.model.dropout import Rate
from attnlab.model.encoders.encoder import Encoded, Encoder
from attnlab.model.gates import ContextGate
from attnlab.model.histories.history import History
from attnlab.model.initialisation import Initialisation
from attnlab.model.input_feeding import InputFeeding
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.outputs.output import (
    Output,
    Reading,
    check_alignment,
    check_attention,
    check_pointing,
    check_vocabularies,
    stacked,
)
from attnlab.model.pads import pads_last, reorder
from attnlab.model.readouts import Readout, tie_embeddings
from attnlab.model.recurrence import RecurrentState
from attnlab.model.scopes import Scope
from attnlab.model.unrolled import StepsSoFar, Unrolled


class Seq2Seq(nn.Module):
    """An encoder, a bridge, and a decoder with or without an attention.

    `step` is the one definition of the model; `forward` is a loop over it, or, where no step reads
    what another found, all steps at once, with the same numbers.

    Args:
        tied_embeddings: `target` uses the target embedding as the output layer's weights too (Press
            and Wolf 2017); `all` also as the source embedding, over one joint vocabulary.
        initialisation: how the weights are drawn; None leaves them as torch draws them.
        attention_dropout: of single attention weights, in training.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = (
        "source_vocabulary_size",
        "target_vocabulary_size",
        "padding",
    )

    def __init__(
        self,
        encoder: Part[Encoder],
        bridge: Part[Bridge],
        attention: Part[Score] | None,
        projection: Part[LinearProjection] | None,
        normaliser: Part[Normaliser],
        scope: Part[Scope],
        history: Part[History] | None,
        heads: Part[MultiHeadAttention] | None,
        decoder: Part[Decoder],
        readout: Part[Readout],
        output: Part[Output],
        input_feeding: Part[InputFeeding] | None,
        tied_embeddings: Literal["none", "target", "all"],
        initialisation: Initialisation | None = None,
        gate: Part[ContextGate] | None = None,
        attention_dropout: Rate = 0.0,
        *,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        padding: Padding,
    ) -> None:
        super().__init__()
        self.padding = padding
        self.encoder: Encoder = encoder(
            source_vocabulary_size=source_vocabulary_size, padding=padding
        )

        # A decoder that attends reads the encoder's outputs, any other its summary.
        value_size = self.encoder.output_size
        if attention is None:
            value_size = self.encoder.state_shape.size
        self.decoder: Decoder = decoder(
            mechanism=mechanism_of(
                attention, projection, normaliser, scope, history, heads, gate, attention_dropout
            ),
            readout=readout,
            input_feeding=input_feeding,
            value_size=value_size,
            target_vocabulary_size=target_vocabulary_size,
        )

        self._check_bridge(bridge.target, attends=attention is not None)
        self.bridge: Bridge = bridge(
            encoder_shape=self.encoder.state_shape,
            decoder_shape=self.decoder.body.state_shape,
            output_size=self.encoder.output_size,
            backward_size=self.encoder.backward_size,
        )
        self._check_source_is_read()

        context_size = value_size if self.decoder.into_readout else 0
        self._check_output(output.target, context_size)
        check_vocabularies(output.target, source_vocabulary_size, target_vocabulary_size)
        body = self.decoder.body
        self.output: Output = output(
            readout_size=body.readout.size,
            hidden_size=body.state_shape.size,
            context_size=context_size,
            embedding_size=body.embedding.embedding_dim,
            target_vocabulary_size=target_vocabulary_size,
        )
        vocabulary = self.output.vocabulary
        tie_embeddings(tied_embeddings, vocabulary, body.embedding, self.encoder.embedding)
        if initialisation is not None:
            initialisation(self)

    def _check_bridge(self, bridge: type[Bridge], attends: bool) -> None:
        """Raise ValueError for a bridge that goes with another encoder or decoder."""
        if bridge.passes_source and self.decoder.body.state_shape.layers == 0:
            raise ValueError(
                f"bridge {bridge.__name__} makes a first recurrent state, but this decoder "
                "has none, and looks at the source by its attentions alone; choose "
                "model/bridge=zero"
            )
        hides_a_part = attends and not self.encoder.attended_whole
        if hides_a_part and not bridge.reads_final_state:
            raise ValueError(
                "encoder keeps a part of the source from the attention, and only its final state "
                f"holds that part, which bridge {bridge.__name__} does not read; choose "
                "model/bridge=linear or model.encoder.read=both"
            )

    def _check_source_is_read(self) -> None:
        """Raise ValueError for a decoder that nothing tells of the source."""
        if not (self.bridge.passes_source or self.decoder.reads_memory):
            raise ValueError(
                "bridge hands nothing of the source to a decoder that never looks at it; choose "
                "model/bridge=linear, model.decoder.context=every_step, or a model/attention and a "
                "model/decoder that attends"
            )

    def _check_output(self, output: type[Output], context_size: int) -> None:
        """Raise ValueError for an output that needs another attention or decoder."""
        attention, body = self.decoder.attention, self.decoder.body
        check_attention(output, attention)
        check_alignment(output, attention, context_size)
        check_pointing(
            output,
            attention,
            body.readout,
            has_state=body.state_shape.layers > 0,
            feeds_context=self.decoder.into_cell or self.decoder.steps_twice,
        )

    def encode(
        self, source: Tensor, source_mask: Tensor, intervention: Intervention | None = None
    ) -> tuple[Memory, DecoderState]:
        """source (B, S) and its mask -> the memory that the decoder reads, and its first state."""
        encoded = self.encoder(source, source_mask)
        recurrent = self.bridge(encoded, source_mask)
        attention = self.decoder.attention
        memories = self._remember(encoded, source_mask, intervention)
        if intervention is not None and intervention.patch is not None:
            recurrent, memories = self._patch(intervention.patch, recurrent, memories)
        memory, *of_blocks = memories
        state = self.decoder.first_state(recurrent, encoded)
        if attention is None:
            return memory, state
        memory = replace(memory, source=source, of_blocks=tuple(of_blocks))
        if self.output.reads_each_value:
            assert memory.values is not None
            projected = self.decoder.body.readout.project_context(memory.values)
            memory = replace(memory, projected_values=projected)
        return memory, replace(state, past=attention.first_past(memory))

    def _remember(
        self, encoded: Encoded, source_mask: Tensor, intervention: Intervention | None = None
    ) -> list[Memory]:
        """The memory of the decoder's attention, and that of each of its blocks."""
        attention = self.decoder.attention
        is_masked = self.padding.attention_masked
        memory = remember(encoded, source_mask, is_masked, attention, intervention)
        of_blocks = [
            memory
            if each is attention
            else remember(encoded, source_mask, is_masked, each, intervention)
            for each in self.decoder.block_attentions
        ]
        return [memory, *of_blocks]

    def _patch(
        self, patch: Patch, recurrent: RecurrentState, memories: list[Memory]
    ) -> tuple[RecurrentState, list[Memory]]:
        """The first recurrent state and the memories with what another sentence gives to them."""
        assert patch.batch is not None
        mask = patch.batch.source_mask
        encoded = self.encoder(patch.batch.source, mask)
        if patch.needs_attention:
            others = self._remember(encoded, mask)
            memories = [
                own.patched(patch, each) for own, each in zip(memories, others, strict=True)
            ]
        if patch.state:
            first_row = memories[0].lengths.new_zeros(len(memories[0].lengths))
            recurrent = self.bridge(encoded, mask).select(first_row)
        return recurrent, memories

    def step(
        self, tokens: Tensor, state: DecoderState, memory: Memory
    ) -> tuple[Tensor, DecoderState, Tensor | None]:
        """One step: the logits of the next tokens, the state after, and the attention weights.

        tokens are the last ones, (B,); logits are (B, V), weights (B, S), the mean over the heads,
        or where the output says that the next token comes from.
        """
        token = Token(self.decoder.body.embed(tokens))
        output, state = self.decoder.step(token, state, memory)
        reading = self._read_on(output, memory, state.last_reading, tokens)
        if self.output.follows_alignment:
            state = replace(state, last_reading=reading)
        weights = self.output.alignment(reading)
        if weights is None and output.attention_weights is not None:
            weights = output.attention_weights.mean(1)
        return self.output(reading), self._feed(reading, state), weights

    def forward(
        self,
        batch: Batch,
        feed_reference: Tensor | None = None,
        sample_guesses: bool = False,
        intervention: Intervention | None = None,
    ) -> Unrolled:
        """Read the target as reference (teacher forcing), or in part as the model's own last guess.

        Args:
            feed_reference: (B, T) bool; where False, position t is fed a guess of step t-1 in place
                of the reference. None feeds the reference everywhere.
            sample_guesses: a guess is drawn from the model's distribution, and not its likeliest
                token.
        """
        memory, state = self.encode(batch.source, batch.source_mask, intervention)
        memory = memory.recorded_by(self._new_draws())
        inputs, labels, mask = batch.target_input, batch.target_output, batch.target_mask
        skip_leading_pads = self.padding.decoder == "pre" and self.padding.recurrence == "skip"
        order = pads_last(mask) if skip_leading_pads else None
        if order is not None:
            inputs, labels = reorder(inputs, order), reorder(labels, order)
            mask = reorder(mask, order)
            feed_reference = None if feed_reference is None else reorder(feed_reference, order)

        if feed_reference is None and self.decoder.reads_all_steps_at_once:
            unrolled = self._all_steps_at_once(inputs, mask, state, memory)
        else:
            unrolled = self._unroll(inputs, mask, feed_reference, sample_guesses, state, memory)
        unrolled = self._align(unrolled, labels, mask)
        return unrolled if order is None else unrolled.reordered(order.argsort(dim=1))

    def _new_draws(self) -> Draws | None:
        """A record of what the attention draws, where it does."""
        attention = self.decoder.attention
        if not self.training or attention is None or attention.drawing is None:
            return None
        return Draws()

    def _align(self, unrolled: Unrolled, labels: Tensor, mask: Tensor) -> Unrolled:
        """The pass as the output reads it that knows the target: labels and mask are (B, T)."""
        reading = self.output.of_target(unrolled.reading, labels, mask)
        posterior = self.output.posterior(reading, mask)
        if posterior is None:
            return replace(unrolled, reading=reading)
        return replace(unrolled, reading=reading, attention_weights=posterior)

    def _all_steps_at_once(
        self, inputs: Tensor, mask: Tensor, state: DecoderState, memory: Memory
    ) -> Unrolled:
        """The pass of a decoder of which no step reads what another one found."""
        tokens = self.decoder.body.embed(inputs)
        output = self.decoder.all_steps(tokens, state, memory, count_positions(mask))
        weights = output.attention_weights
        reading = self._read(output, memory)
        unrolled = Unrolled(reading, None if weights is None else weights.mean(1))
        return unrolled.with_drawn(None if memory.draws is None else memory.draws.take())

    def _unroll(
        self,
        inputs: Tensor,
        mask: Tensor,
        feed_reference: Tensor | None,
        sample_guesses: bool,
        state: DecoderState,
        memory: Memory,
    ) -> Unrolled:
        """The loop over the step, in the order in which the target is read."""
        body = self.decoder.body
        embedded = body.embed(inputs.t())  # (T, B, E)
        guessed_rows: Sequence[Tensor | None]
        if feed_reference is None:
            tokens = body.known_tokens(embedded)
            guessed_rows = [None] * len(tokens)  # no step has a guess
        else:
            tokens = [Token(each) for each in embedded]
            guessed_rows = _rows_by_step(_where_guesses_are_fed(feed_reference, mask))

        positions = count_positions(mask)
        reads_each_step = self._reads_each_step(feed_reference is not None)
        found = StepsSoFar()
        for t, (token, rows) in enumerate(zip(tokens, guessed_rows, strict=True)):
            written = inputs[:, t]
            if rows is not None and len(rows) > 0:
                guess = self._guess_next(found, memory, rows, sample_guesses)
                written = written.index_copy(0, rows, guess)
                token = self._with_guess(token, rows, guess)

            before = replace(state, position=positions[:, t])
            output, state = self.decoder.step(token, before, memory)
            found.outputs.append(output)
            if memory.draws is not None:
                found.note_drawn(memory.draws.take())
            if reads_each_step:
                reading = self._read_on(output, memory, found.last_reading, written)
                found.readings.append(reading)
                state = self._feed(reading, state)
            if self.decoder.has_history_loss:
                found.losses.append(self.decoder.history_loss(output, before))

        if reads_each_step:
            reading = stacked(found.readings)
        else:
            reading = self._read_all(found.outputs, memory)
        loss = self._history_loss(found.losses, mask)
        return Unrolled(reading, found.attention_weights(), loss).with_drawn(found.all_drawn())

    def _reads_each_step(self, has_guesses: bool) -> bool:
        """Whether the loop reads each step when it comes to it, and not all of them at its end.

        Input feeding feeds what was read; a guess goes by it where the output follows what it read
        of the steps before.
        """
        feeds_readout = self.decoder.body.input_feeding is not None
        return feeds_readout or (has_guesses and self.output.follows_alignment)

    @torch.no_grad()  # a choice among tokens has no gradient
    def _guess_next(self, found: StepsSoFar, memory: Memory, rows: Tensor, sample: bool) -> Tensor:
        """What the last step would have written in some rows of the batch."""
        if found.readings:
            last = found.readings[-1][rows]
        else:
            last = self._read_rows(found.outputs[-1], memory, rows)
        return _choose_tokens(self.output(last), sample)

    def _with_guess(self, token: Token, rows: Tensor, guess: Tensor) -> Token:
        """The token with a guess in the place of the reference in some rows."""
        # A dense gradient of a few guesses would be as large as the embedding; on mps there is no
        # other.
        embedded = self.decoder.body.embed(guess, sparse=guess.is_cpu)
        return Token(token.embedded.index_copy(0, rows, embedded))

    def _history_loss(self, losses: list[Tensor], mask: Tensor) -> Tensor | None:
        """The weighted sum of the history's losses (B,) of the steps over the real tokens."""
        history = self.decoder.history
        if history is None or not losses:
            return None
        return history.loss_weight * (torch.stack(losses, dim=1) * mask).sum()

    def _read(self, output: StepOutput, memory: Memory) -> Reading:
        """What the output reads of a step, or of all steps at once."""
        readout = self.decoder.body.readout(output.hidden, output.context, output.token)
        return self.output.read_with(self.decoder.body.readout, readout, output, memory)

    def _read_on(
        self, output: StepOutput, memory: Memory, last: SelectsRows | None, written: Tensor
    ) -> Reading:
        """What the output reads of a step, by what it read of the last one where it follows that.

        written: (B,) the tokens that the step read.
        """
        reading = self._read(output, memory)
        if not self.output.follows_alignment:
            return reading
        return self.output.follow(reading, last, written)

    def _read_rows(self, output: StepOutput, memory: Memory, rows: Tensor) -> Reading:
        """What the output reads of a step, for some rows of the batch."""
        if self.output.needs_attention:
            memory = memory.select(rows)
        return self._read(output.select(rows), memory)

    def _read_all(self, outputs: list[StepOutput], memory: Memory) -> Reading:
        """What the output reads of all steps at once, from the output of each: (B, T, ...)."""
        hidden = torch.stack([output.hidden for output in outputs], dim=1)
        tokens = torch.stack([output.token for output in outputs], dim=1)
        contexts = [output.context for output in outputs if output.context is not None]
        context = torch.stack(contexts, dim=1) if contexts else None

        weights = None
        if self.output.needs_attention:
            of_steps = [output.attention_weights for output in outputs]
            weights = torch.stack([each for each in of_steps if each is not None], dim=2)
        return self._read(StepOutput(hidden, context, tokens, weights), memory)

    def _feed(self, reading: Reading, state: DecoderState) -> DecoderState:
        """The state with what this step feeds to the next."""
        body = self.decoder.body
        if body.input_feeding is None:
            return state
        return replace(state, fed=body.input_feeding(reading, self.output, body.embedding))


def _where_guesses_are_fed(feed_reference: Tensor, mask: Tensor) -> Tensor:
    """(B, T) bool: where a guess is fed.

    It follows a real token only: pads and <bos> are always fed as they stand.
    """
    guessed = ~feed_reference & mask
    guessed[:, 1:] &= mask[:, :-1]
    guessed[:, 0] = False
    return guessed


def _rows_by_step(places: Tensor) -> tuple[Tensor, ...]:
    """(B, T) bool -> of each step its rows in their order.

    At once, as each read from a GPU synchronises.
    """
    rows = places.t().nonzero()[:, 1].contiguous()
    return rows.split(places.sum(0).tolist())


def _choose_tokens(logits: Tensor, sample: bool) -> Tensor:
    """The guessed tokens (B,), from logits (B, V), which it overwrites.

    Never `<pad>` or `<bos>`, which no search writes either.
    """
    logits[:, [PAD, BOS]] = -torch.inf
    if not sample:
        return logits.argmax(-1)
    return logits.float().softmax(-1).multinomial(1).squeeze(1)
