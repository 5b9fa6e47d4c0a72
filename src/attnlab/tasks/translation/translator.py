"""Translation and scoring with a trained model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnlab.batch import EOS, Batch
from attnlab.config.identity import allowed_modules
from attnlab.config.target import TARGET
from attnlab.data.corpus import AS_IT_IS, TextCleaning
from attnlab.data.padding import make_batch
from attnlab.data.prepared import PreparedData
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError
from attnlab.model.attention.intervention import Intervention
from attnlab.model.bridges import ZeroBridge
from attnlab.model.fast import speed_up
from attnlab.model.fast.packed import weights_packed_once
from attnlab.model.model_folder import bind_section, load_model, read_config
from attnlab.model.seq2seq import Seq2Seq
from attnlab.runs.run_folder import ServedModel
from attnlab.search.search import Hypothesis, Search, next_log_probs
from attnlab.tasks.cleaning import cleaned, cleaning_of
from attnlab.tasks.predictor import Predictor
from attnlab.tasks.requests import (
    BATCH_SIZE,
    NO_CHANGE,
    check_attention,
    check_sources,
    check_steps,
    rows_by_length,
    windows,
)
from attnlab.tasks.translation.answers import (
    PLAIN_HYPOTHESIS,
    Scored,
    Translation,
    plain_translation,
)
from attnlab.tasks.translation.hypotheses import HypothesisText
from attnlab.tasks.translation.intervened import Intervened
from attnlab.tasks.translation.posterior import with_posteriors
from attnlab.tasks.translation.search_settings import with_settings


class Translator(Predictor):
    """A trained model with its tokenizers and its search: `translator("Guten Tag").text`.

    Every text is cleaned as the training data were, in Unicode and white space.

    search: the section `search` of the config that the model was trained with.
    cleaning: of the corpus that the model was trained on. Its limits of length drop no text here.
    config: all of that config, where it is known.
    """

    does = "translates"
    commands = ("translate", "score")
    served = ServedModel(
        "translator",
        answer={**PLAIN_HYPOTHESIS, "alternatives?": [PLAIN_HYPOTHESIS]},
        settings={
            "search": "string",
            "beam": "long",
            "n_best": "long",
            "length_penalty": "double",
            "coverage_penalty": "double",
            "max_length": "long",
            "max_length_ratio": "double",
            "min_length": "long",
            "replace_unknown": "boolean",
            "int8": "boolean",
            "temperature": "double",
            "top_k": "long",
            "top_p": "double",
            "seed": "long",
        },
    )

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
        self._source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.cleaning = cleaning
        self._search = dict(search)
        self._allow = allowed_modules(allow)

    @classmethod
    def load(cls, folder: Path, device: str = "cpu", allow: Collection[str] = ()) -> Translator:
        """A translator from a model folder alone; `allow` and errors as for `load_model`."""
        model = speed_up(load_model(folder, device, allow))
        config = read_config(folder)
        return cls(
            model=model,
            source_tokenizer=Tokenizer.load(folder / "source_tokenizer.json"),
            target_tokenizer=Tokenizer.load(folder / "target_tokenizer.json"),
            search=config["search"],
            allow=allow,
            cleaning=cleaning_of(config, allow),
            config=config,
        )

    @classmethod
    def of_data(
        cls,
        model: Seq2Seq,
        data: PreparedData,
        search: Mapping[str, Any] | None,
        cleaning: TextCleaning,
    ) -> Translator:
        assert search is not None
        tokenizers = (data.source_tokenizer, data.target_tokenizer)
        return cls(model, *tokenizers, search, cleaning=cleaning)

    @property
    def source_tokenizer(self) -> Tokenizer:
        return self._source_tokenizer

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

        A blank text gets a translation without tokens; the model does not see it.

        Raises ExperimentError for settings that are unknown or out of range, for an intervention
        that does not fit the model or the sentence, and for what is not a text.
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
        """Translate one text after the other, in their order and in steady memory.

        Arguments and errors as for calling it, and:

        Args:
            with_attention: False leaves `attention` out, which saves time and memory.
            batch_size: sentences that go through the model together. The stream reads `WINDOW`
                batches ahead; with 1 it reads no farther than the sentence that it translates.
        """
        if intervene is None:
            intervene = NO_CHANGE
        search = self.search(settings)
        model = self.intervened(intervene)
        intervene = model.intervention
        forced = self.forced(intervene)
        check_steps(intervene, search.max_length)
        to_text = HypothesisText(
            self.source_tokenizer, self.target_tokenizer, search.replace_unknown
        )
        for window in windows(texts, batch_size):
            sources = cleaned(window, self.cleaning)
            ids = self.source_tokenizer.encode_ids(sources)
            found = [Translation(text, "", [], 0.0, [], None) for text in window]
            not_blank = [row for row, source in enumerate(sources) if source.strip()]
            with weights_packed_once():
                for rows in rows_by_length(ids, batch_size, not_blank):
                    batch = self._batch([ids[row] for row in rows], targets=[[] for _ in rows])
                    check_sources(intervene, batch)
                    hypotheses = search(
                        model,
                        batch.source,
                        batch.source_mask,
                        with_attention=with_attention or search.replace_unknown,
                        forced=forced,
                    )
                    hypotheses = with_posteriors(
                        self.model, batch.source, batch.source_mask, hypotheses, intervene
                    )
                    source_masks = batch.source_mask.cpu().numpy()
                    for i, row in enumerate(rows):
                        found[row] = self._best_translation(
                            hypotheses[i],
                            source=window[row],
                            cleaned_source=sources[row],
                            token_ids=ids[row],
                            batch_ids=batch.source[i],
                            source_mask=source_masks[i] if with_attention else None,
                            to_text=to_text,
                        )
            yield from found

    def plain_answers(
        self, texts: Sequence[str], attention: bool = False, **settings: Any
    ) -> list[dict[str, Any]]:
        answers = self.stream(texts, with_attention=attention, **settings)
        return [plain_translation(answer, attention) for answer in answers]

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
        """The log-probability of each token of a given target, and the attention.

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
        """Score one pair after the other, in their order and in steady memory.

        `intervene` and errors as for `score`, `batch_size` as in `stream`.
        """
        if intervene is None:
            intervene = NO_CHANGE
        intervene = self.intervened(intervene).intervention
        model = self.model
        forced = self.forced(intervene)
        for window in windows(pairs, batch_size):
            source_texts = cleaned((source for source, _ in window), self.cleaning)
            target_texts = cleaned((target for _, target in window), self.cleaning)
            sources = self.source_tokenizer.encode_ids(source_texts)
            words = self.source_tokenizer.numbered_words(source_texts)
            targets = self.target_tokenizer.encode_ids(target_texts, words)
            for target in targets:
                check_steps(intervene, len(target) + 1)
                _force_tokens(target, forced)

            found: dict[int, Scored] = {}
            for rows in rows_by_length(targets, batch_size):
                batch = self._batch([sources[row] for row in rows], [targets[row] for row in rows])
                check_sources(intervene, batch)
                log_probs, weights = _target_log_probs(model, batch, intervene)
                for i, row in enumerate(rows):
                    found[row] = self._scored(window[row], batch, i, log_probs, weights)
            for row in range(len(window)):
                yield found[row]

    def search(self, settings: Mapping[str, Any]) -> Search:
        """The model's search with some settings changed.

        Raises ExperimentError for settings that are unknown or out of range.
        """
        node = with_settings(self._search, settings)
        own_module = node[TARGET].rpartition(".")[0]
        return bind_section({"search": node}, "search", Search, (*self._allow, own_module))

    def check_intervention(self, intervention: Intervention) -> None:
        self.intervened(intervention)

    def _batch(self, sources: list[list[int]], targets: list[list[int]]) -> Batch:
        """A batch on the model's device."""
        device = next(self.model.parameters()).device
        return make_batch(sources, targets, self.padding).to(device)

    def intervened(self, intervention: Intervention) -> Intervened:
        """The model under an intervention.

        Raises ExperimentError where it has no attention that could be changed.
        """
        if intervention.changes_weights:
            attention = self.model.decoder.attention
            if attention is None:
                raise ExperimentError(
                    "intervene changes the attention, but the model has none; only force= and a "
                    "patch of the state go with it"
                )
            check_attention(intervention, attention)
        patch = intervention.patch
        if patch is not None and patch.state and isinstance(self.model.bridge, ZeroBridge):
            raise ExperimentError(
                "intervene: patch takes the state, but the decoder of this model starts with none "
                "(model/bridge=zero)"
            )
        try:
            intervention = self._with_patch(intervention)
        except ValueError as error:
            raise ExperimentError(f"intervene: {error}") from None
        return Intervened(self.model, intervention)

    def _with_patch(self, intervention: Intervention) -> Intervention:
        """The intervention with the sentence of its patch read, where it has one."""
        patch = intervention.patch
        if patch is None or patch.batch is not None:
            return intervention
        ids = self.source_tokenizer.encode_ids(cleaned([patch.text], self.cleaning))
        return replace(intervention, patch=patch.read(self._batch(ids, targets=[[]])))

    def forced(self, intervention: Intervention) -> dict[int, int]:
        """The ids of the tokens that an intervention forces, by their steps.

        Raises ExperimentError where the vocabulary lacks one.
        """
        try:
            return {step: self._target_id(token) for step, token in intervention.force.items()}
        except ValueError as error:
            raise ExperimentError(f"force: {error}") from None

    def _target_id(self, token: str | int) -> int:
        """The id of a target token, which may have another Unicode form than the vocabulary's.

        Raises ValueError where the vocabulary lacks it.
        """
        try:
            return self.target_tokenizer.id_of(token)
        except ValueError:
            if not isinstance(token, str):
                raise
            tidied = self.cleaning.tidy(token)
            if not tidied or tidied == token:
                raise
            return self.target_tokenizer.id_of(tidied)

    def _best_translation(
        self,
        hypotheses: list[Hypothesis],
        *,
        source: str,
        cleaned_source: str,
        token_ids: list[int],
        batch_ids: Tensor,
        source_mask: NDArray[np.bool_] | None,
        to_text: HypothesisText,
    ) -> Translation:
        """The best of a sentence's hypotheses, with the others as its alternatives.

        Args:
            source: as it was given.
            token_ids: of the cleaned source, without `<eos>`.
            batch_ids: (S,), the row of the batch, with `<eos>` and pads.
            source_mask: (S,), of that row; None leaves the attention out.
        """
        translations = []
        for hypothesis in hypotheses:
            target_ids = [*hypothesis.tokens, EOS] if hypothesis.finished else hypothesis.tokens
            attention = None
            if source_mask is not None and hypothesis.attention_weights is not None:
                attention = hypothesis.attention_weights.float().cpu().numpy()[:, source_mask]
            translation = Translation(
                source=source,
                text=to_text(hypothesis, batch_ids, cleaned_source),
                tokens=self.target_tokenizer.tokens(target_ids),
                score=hypothesis.score,
                source_tokens=self.source_tokenizer.tokens([*token_ids, EOS]),
                attention=attention,
            )
            translations.append(translation)
        best, *others = translations
        return replace(best, alternatives=others)

    def _scored(
        self,
        pair: tuple[str, str],
        batch: Batch,
        i: int,
        log_probs: Tensor,
        weights: Tensor | None,
    ) -> Scored:
        """Row i of a batch with its log-probabilities (B, T) and attention weights (B, T, S).

        pair: source and target of the row, as they were given.
        """
        source, target = pair
        target_mask = batch.target_mask[i]
        source_mask = batch.source_mask[i]
        attention = None
        if weights is not None:
            attention = weights[i][target_mask][:, source_mask].float().cpu().numpy()
        return Scored(
            source=source,
            target=target,
            tokens=self.target_tokenizer.tokens(batch.target_output[i][target_mask].tolist()),
            log_probs=log_probs[i][target_mask].cpu().numpy(),
            source_tokens=self.source_tokenizer.tokens(batch.source[i][source_mask].tolist()),
            attention=attention,
        )


def _force_tokens(target: list[int], forced: Mapping[int, int]) -> None:
    """Put forced tokens into a target, in place, and cut it off at the first `<eos>`.

    Raises ExperimentError where a token takes the place of its `<eos>`: the target has an end.
    """
    target.append(EOS)
    for step, token in forced.items():
        target[step] = token
    if EOS not in target:
        raise ExperimentError(
            f"intervene: force must name steps below {len(target) - 1}, the tokens of this target, "
            f"for step {len(target) - 1} is that of its <eos>"
        )
    # `make_batch` adds an <eos> of its own.
    del target[target.index(EOS) :]


@torch.no_grad()
def _target_log_probs(
    model: Seq2Seq, batch: Batch, intervene: Intervention
) -> tuple[Tensor, Tensor | None]:
    """Log-probabilities (B, T) of the targets' tokens, and attention weights (B, T, S)."""
    unrolled = model(batch, intervention=intervene)
    logits = model.output(unrolled.reading)  # (B, T, V)
    log_probs = next_log_probs(logits.flatten(0, 1)).view(logits.shape)
    own_log_probs = log_probs.gather(2, batch.target_output.unsqueeze(2)).squeeze(2)
    return own_log_probs, unrolled.attention_weights
