"""Translate and score with a trained model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnlab.batch import EOS, Batch
from attnlab.config.binding import TARGET
from attnlab.data.corpus import AS_IT_IS, TextCleaning
from attnlab.data.padding import make_batch
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError
from attnlab.evaluation.attention_map import AttentionMap
from attnlab.evaluation.hypotheses import HypothesisText
from attnlab.inference.cleaning import cleaned, cleaning_of
from attnlab.inference.requests import (
    BATCH_SIZE,
    NO_CHANGE,
    check_sources,
    check_steps,
    framed,
    rows_by_length,
    windows,
)
from attnlab.inference.search_settings import with_settings
from attnlab.model.attention.intervention import Intervention
from attnlab.model.decoder.decoder import DecoderState
from attnlab.model.fast_linear import weights_packed_once
from attnlab.model.model_folder import bind_section, load_model, read_config
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.search import Hypothesis, Search, next_log_probs


@dataclass(frozen=True, eq=False)
class Translation:
    """What a search wrote for one source.

    Axes: T target tokens, S source tokens, each with its `<eos>` where there is one.

    source: as it was given. What belongs to its tokens is that of the cleaned source, which the
        model reads.
    text: the detokenised translation.
    tokens: T, with `<eos>` unless the length limit cut the translation off.
    score: as the search defines it: the log-probability in nats, divided by the length penalty
        where there is one.
    source_tokens: S.
    attention: (T, S) float32, the mean over the heads; None for a model without attention.
    alternatives: the other hypotheses of an n-best list, best first.
    """

    source: str
    text: str
    tokens: list[str]
    score: float
    source_tokens: list[str]
    attention: NDArray[np.float32] | None = field(repr=False)
    alternatives: list[Translation] = field(default_factory=list, repr=False)

    @property
    def map(self) -> AttentionMap:
        """The attention with its tokens, to draw; raises ExperimentError for a model without
        attention.
        """
        return attention_map(
            self.source_tokens, self.tokens, self.attention, f"{self.source} → {self.text}"
        )

    def _repr_html_(self) -> str:
        return notebook_page(self, self.text)


@dataclass(frozen=True, eq=False)
class Scored:
    """How likely a model finds a given target.

    source, target: as they were given.
    tokens: T target tokens, the last one `<eos>`.
    log_probs: (T,) float32, the log-probability in nats of each token after the reference before
        it.
    source_tokens, attention: as in `Translation`.
    """

    source: str
    target: str
    tokens: list[str]
    log_probs: NDArray[np.float32]
    source_tokens: list[str]
    attention: NDArray[np.float32] | None = field(repr=False)

    @property
    def total(self) -> float:
        """The log-probability of the whole target, in nats."""
        return float(self.log_probs.sum(dtype=np.float64))

    @property
    def map(self) -> AttentionMap:
        """As `Translation.map`."""
        return attention_map(
            self.source_tokens, self.tokens, self.attention, f"{self.source} → {self.target}"
        )

    def _repr_html_(self) -> str:
        return notebook_page(self, self.target)


def attention_map(
    source: list[str], target: list[str], weights: NDArray[np.float32] | None, title: str
) -> AttentionMap:
    if weights is None:
        raise ExperimentError("this model has no attention to draw")
    return AttentionMap(source, target, weights, title)


def notebook_page(answer: Translation | Scored, text: str) -> str:
    """The heat map as a notebook shows it.

    text: what is shown for a model without attention.
    """
    if answer.attention is None:
        return f"<p>{escape(text)}</p>"
    from attnlab.plots.attention import heat_map_html  # costs an import of matplotlib

    longest = max(map(len, answer.source_tokens), default=0)
    return framed(
        heat_map_html([answer.map], title=None), 100 + 9 * longest + 25 * len(answer.tokens)
    )


@dataclass(frozen=True)
class Intervened:
    """A model under an intervention, as a search takes it."""

    model: Seq2Seq
    intervention: Intervention

    def encode(self, source: Tensor, source_mask: Tensor) -> tuple[Any, DecoderState]:
        return self.model.encode(source, source_mask, self.intervention)

    def step(
        self, tokens: Tensor, state: DecoderState, memory: Any
    ) -> tuple[Tensor, DecoderState, Tensor | None]:
        return self.model.step(tokens, state, memory)


class Translator:
    """A trained model with its tokenizers and its search: `translator("Guten Tag").text`.

    Every text is cleaned as the training data were, in Unicode and white space.

    search: the section `search` of the config that the model was trained with.
    cleaning: of the corpus that the model was trained on. Its limits of length drop no text here.
    config: all of that config, where it is known.
    """

    def __init__(
        self,
        model: Seq2Seq,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        search: Mapping[str, Any],
        allow: Collection[str] = (),
        cleaning: TextCleaning = AS_IT_IS,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.config = config
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.cleaning = cleaning
        self.padding = model.padding
        self._search, self._allow = dict(search), tuple(allow)

    @classmethod
    def load(cls, folder: Path, device: str = "cpu", allow: Collection[str] = ()) -> Translator:
        """A translator from a model folder alone; `allow` and errors as for `load_model`."""
        model, config = load_model(folder, device, allow), read_config(folder)
        return cls(
            model,
            Tokenizer.load(folder / "source_tokenizer.json"),
            Tokenizer.load(folder / "target_tokenizer.json"),
            config["search"],
            allow,
            cleaning_of(config, allow),
            config,
        )

    @overload
    def __call__(
        self, texts: str, *, intervene: Intervention | None = None, **settings: Any
    ) -> Translation: ...
    @overload
    def __call__(
        self,
        texts: list[str] | tuple[str, ...],
        *,
        intervene: Intervention | None = None,
        **settings: Any,
    ) -> list[Translation]: ...
    def __call__(
        self,
        texts: str | list[str] | tuple[str, ...],
        *,
        intervene: Intervention | None = None,
        **settings: Any,
    ) -> Translation | list[Translation]:
        """Translate one text, or a list of texts.

        Args:
            intervene: changes the attention, or forces target tokens.
            settings: of the search: `beam=5` or any setting of conf/search, in place of the model's
                own; `search="greedy"`, `"beam"` or `"sample"` chooses another one.

        A blank text gets a translation without tokens, and the model is not asked.

        Raises ExperimentError for settings that are unknown or out of range, for an intervention
        that does not fit the model or the sentence, and for what is no text.
        """
        if isinstance(texts, str):
            return next(self.stream([texts], intervene=intervene, **settings))
        return list(self.stream(texts, intervene=intervene, **settings))

    def stream(
        self,
        texts: Iterable[str],
        *,
        intervene: Intervention | None = None,
        with_attention: bool = True,
        batch_size: int = BATCH_SIZE,
        **settings: Any,
    ) -> Iterator[Translation]:
        """As calling it, one translation after the other in the order of the texts, in steady
        memory.

        Args:
            with_attention: False leaves `attention` out, which saves time and memory.
            batch_size: sentences that go through the model together. The stream reads `WINDOW`
                batches ahead; with 1
                it reads no farther than the sentence that it translates.
        """
        search, intervene = self.search(settings), NO_CHANGE if intervene is None else intervene
        model, forced = self.intervened(intervene), self.forced(intervene)
        check_steps(intervene, search.max_length)
        to_text = HypothesisText(
            self.source_tokenizer, self.target_tokenizer, search.replace_unknown
        )
        for window in windows(texts, batch_size):
            sources = cleaned(window, self.cleaning)
            ids = self.source_tokenizer.encode_ids(sources)
            asked = [row for row, source in enumerate(sources) if source.strip()]
            found = {
                row: Translation(text, "", [], 0.0, [], None) for row, text in enumerate(window)
            }
            with weights_packed_once():
                for rows in rows_by_length(ids, batch_size, asked):
                    batch = self._batch([ids[row] for row in rows], [[] for _ in rows])
                    check_sources(intervene, batch)
                    attends = with_attention or search.replace_unknown
                    hypotheses = search(model, batch.source, batch.source_mask, attends, forced)
                    masks = batch.source_mask.cpu().numpy()
                    for i, row in enumerate(rows):
                        mask = masks[i] if with_attention else None
                        best, *others = [
                            self._translation(
                                window[row],
                                sources[row],
                                ids[row],
                                batch.source[i],
                                mask,
                                hypothesis,
                                to_text,
                            )
                            for hypothesis in hypotheses[i]
                        ]
                        found[row] = replace(best, alternatives=others)
            yield from (found[row] for row in range(len(window)))

    @overload
    def score(self, source: str, target: str, intervene: Intervention | None = None) -> Scored: ...
    @overload
    def score(
        self, source: str | list[str], target: list[str], intervene: Intervention | None = None
    ) -> list[Scored]: ...
    def score(
        self,
        source: str | list[str],
        target: str | list[str],
        intervene: Intervention | None = None,
    ) -> Scored | list[Scored]:
        """The log-probability of each token of a target, with the reference fed, and where the
        model looked.

        One source with a list of targets scores each of them. A forced token stands in the place of
        the target's.

        Raises ExperimentError as calling it; ValueError for lists of different lengths.
        """
        if isinstance(target, str):
            assert isinstance(source, str)
            return next(self.stream_scores([(source, target)], intervene))
        sources = [source] * len(target) if isinstance(source, str) else source
        return list(self.stream_scores(zip(sources, target, strict=True), intervene))

    def stream_scores(
        self,
        pairs: Iterable[tuple[str, str]],
        intervene: Intervention | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> Iterator[Scored]:
        """As `score`, one pair after the other in steady memory; `batch_size` as in `stream`."""
        intervene = NO_CHANGE if intervene is None else intervene
        model, forced = self.intervened(intervene).model, self.forced(intervene)
        for window in windows(pairs, batch_size):
            sources = self.source_tokenizer.encode_ids(
                cleaned((source for source, _ in window), self.cleaning)
            )
            targets = self.target_tokenizer.encode_ids(
                cleaned((target for _, target in window), self.cleaning)
            )
            for target in targets:
                check_steps(intervene, len(target) + 1)
                target.append(EOS)
                for step, token in forced.items():
                    target[step] = token
                del target[target.index(EOS) :]
            found: dict[int, Scored] = {}
            for rows in rows_by_length(targets, batch_size):
                batch = self._batch([sources[row] for row in rows], [targets[row] for row in rows])
                check_sources(intervene, batch)
                with torch.no_grad():
                    unrolled = model(batch, intervention=intervene)
                    log_probs = next_log_probs(model.output(unrolled.readout).flatten(0, 1))
                log_probs = log_probs.view(*batch.target_output.shape, -1)
                log_probs = log_probs.gather(2, batch.target_output.unsqueeze(2)).squeeze(2)
                for i, row in enumerate(rows):
                    real, columns = batch.target_mask[i], batch.source_mask[i]
                    weights = unrolled.attention_weights
                    found[row] = Scored(
                        source=window[row][0],
                        target=window[row][1],
                        tokens=self.target_tokenizer.tokens(batch.target_output[i][real].tolist()),
                        log_probs=log_probs[i][real].cpu().numpy(),
                        source_tokens=self.source_tokenizer.tokens(
                            batch.source[i][columns].tolist()
                        ),
                        attention=None
                        if weights is None
                        else weights[i][real][:, columns].float().cpu().numpy(),
                    )
            yield from (found[row] for row in range(len(window)))

    def search(self, settings: Mapping[str, Any]) -> Search:
        """The model's search with some settings changed; raises ExperimentError where they cannot
        be.
        """
        node = with_settings(self._search, settings)
        return bind_section(
            {"search": node}, "search", Search, (*self._allow, node[TARGET].rpartition(".")[0])
        )

    def _batch(self, sources: list[list[int]], targets: list[list[int]]) -> Batch:
        return make_batch(sources, targets, self.padding).to(next(self.model.parameters()).device)

    def intervened(self, intervention: Intervention) -> Intervened:
        """The model under an intervention; raises ExperimentError where it has no attention that
        could be changed.
        """
        if intervention.changes_weights and self.model.decoder.attention is None:
            raise ExperimentError(
                "intervene changes the attention, but the model has none; only force= goes with it"
            )
        return Intervened(self.model, intervention)

    def forced(self, intervention: Intervention) -> dict[int, int]:
        """The ids of the tokens that it forces; raises ExperimentError where the vocabulary lacks
        one.
        """
        try:
            return {step: self._target_id(token) for step, token in intervention.force.items()}
        except ValueError as error:
            raise ExperimentError(f"force: {error}") from None

    def _target_id(self, token: str | int) -> int:
        """As `Tokenizer.id_of`, also of a token in another Unicode form than that of the
        vocabulary.
        """
        try:
            return self.target_tokenizer.id_of(token)
        except ValueError:
            tidied = self.cleaning.tidy(token) if isinstance(token, str) else token
            if not tidied or tidied == token:
                raise
            return self.target_tokenizer.id_of(tidied)

    def _translation(
        self,
        given: str,
        text: str,
        ids: list[int],
        source: Tensor,
        mask: NDArray[np.bool_] | None,
        hypothesis: Hypothesis,
        to_text: HypothesisText,
    ) -> Translation:
        """A hypothesis in words.

        Args:
            given, text: the source as it was given, and cleaned, as the ids encode it.
            source, mask: (S,) the row of the batch; no mask leaves the attention out.
        """
        weights = None if mask is None else hypothesis.attention_weights
        return Translation(
            source=given,
            text=to_text(hypothesis, source, text),
            tokens=self.target_tokenizer.tokens(hypothesis.tokens + [EOS] * hypothesis.finished),
            score=hypothesis.score,
            source_tokens=self.source_tokenizer.tokens([*ids, EOS]),
            attention=None if weights is None else weights.float().cpu().numpy()[:, mask],
        )
