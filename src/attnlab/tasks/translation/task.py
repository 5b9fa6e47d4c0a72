"""The task of translation: sentences to sentences."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from attnlab.batch import Padding
from attnlab.config.identity import target_modules
from attnlab.config.part import Part
from attnlab.data.corpus import Corpus
from attnlab.data.prepared import PreparedData, PreparedSplit, short_text
from attnlab.data.row_kinds import Pairs
from attnlab.errors import ExperimentError
from attnlab.model.outputs.output import Output
from attnlab.model.outputs.pointer_network import refusal_of_smoothing
from attnlab.model.seq2seq import Seq2Seq
from attnlab.model.trial_pass import trial_batch
from attnlab.progress import Progress
from attnlab.runs.shared_views import View
from attnlab.search.search import Search, attention_required
from attnlab.tasks.task import Experiment, Metrics, Pictured, Task, longest_of
from attnlab.tasks.translation.settings import (
    ATTENTION_IS_ON,
    FREE_RUNNING,
    PERPLEXITY,
    TOKEN_NLL,
    TranslationTraining,
)
from attnlab.training.attention_losses.attention_loss import (
    Links,
    check_hard,
    check_learns,
    check_signs,
    read_source_vocabulary,
)
from attnlab.training.attention_schedule import schedule_problems
from attnlab.training.graphs import graph_problems
from attnlab.training.reinforcement import DRAW_ENTROPY, draw_problems
from attnlab.training.settings import LOGGED_STEPS
from attnlab.training.teacher_forcing import checked_ratio

if TYPE_CHECKING:
    import pytorch_lightning as pl

    from attnlab.tasks.predictor import ExplorerPage, Predictor
    from attnlab.tasks.report_section import ReportSection
    from attnlab.tasks.translation.evaluation import Evaluation


class Translation(Task[PreparedData]):
    """Sentences to sentences, by an encoder and a decoder."""

    name = "translation"
    sections = {  # noqa: RUF012
        "data": Corpus,
        "model": Part[Seq2Seq],
        "search": Search,
        "training": TranslationTraining,
    }
    rows = Pairs
    prepared = PreparedData
    trial_sizes = {"source_vocabulary_size": 8, "target_vocabulary_size": 8}  # noqa: RUF012
    main_metrics = ("bleu", "chrf", "exact_match", "aer", "token_nll")
    view = View(
        name,
        "Which attention translates best",
        metrics=("test/bleu", "test/exact_match", "test/aer", "test/chrf", "test/token_nll"),
        curves=(
            "validation/free_running/bleu",
            "validation/free_running/exact_match",
            "validation/teacher_forced/token_nll",
        ),
    )

    @property
    def same_files(self) -> tuple[str, ...]:
        # Languages and the tokenizer of BLEU, in data.json, change nothing for a model.
        return self.prepared.tokenizer_files

    def check(self, bound: Mapping[str, Any]) -> list[str]:
        problems = []
        training, model = bound["training"], bound["model"].values
        attention_loss, normaliser = training.attention_loss, model.get("normaliser")
        for name, trainer in bound["data"].by_side.items():
            if trainer.joint:
                problems.append(
                    f"data.{name}: joint is true, one vocabulary for both sides, but each has a "
                    "tokenizer of its own; choose joint=false, or one data/tokenizer for both"
                )
        if model["tied_embeddings"] == "all" and not bound["data"].joint:
            problems.append(
                "model.tied_embeddings is all, which needs one joint vocabulary, but "
                "data.tokenizer.joint is false; choose data.tokenizer.joint=true or "
                "model.tied_embeddings=target"
            )
        output = model.get("output")
        if output is not None and output.target.copies and not bound["data"].joint:
            problems.append(
                f"model.output is {output.target.__name__}, which copies tokens of the source and "
                "needs one joint vocabulary, but data.tokenizer.joint is false; choose "
                "data.tokenizer.joint=true or model/output=linear"
            )
        only_copies = output is not None and output.target.only_copies
        if only_copies and training.label_smoothing:
            problems.append(refusal_of_smoothing(output.target))
        try:
            checked_ratio(training.teacher_forcing, step=0)
        except ExperimentError as error:
            problems += error.problems
        if attention_loss is not None and model.get("attention") is None:
            problems.append(
                "training.attention_loss is on attention weights, but the model has no attention; "
                "choose training/attention_loss=none or a model/attention"
            )
        problems += check_signs(attention_loss, normaliser)
        problems += check_hard(attention_loss, normaliser)
        problems += check_learns(attention_loss, model)
        problems += draw_problems(attention_loss, normaliser)
        problems += schedule_problems(training.attention_schedule, model)
        problems += graph_problems(bound)
        # In an ensemble another model may attend
        if model.get("attention") is None and not bound["paths"].ensemble:
            searches = {
                "search": bound["search"],
                "training.validation_search": training.validation_search,
            }
            for path, search in searches.items():
                if search.needs_attention:
                    problems += attention_required(f"{path}.{search.needs_attention}").problems
        return problems

    def trial_loss(self, model: Seq2Seq, padding: Padding) -> Tensor:
        logits = model.output(model(trial_batch(padding)).reading)
        return logits.log_softmax(-1).sum()

    def monitored(self, bound: Mapping[str, Any]) -> set[str]:
        from attnlab.tasks.translation.metrics import TextMetrics

        training = bound["training"]
        of_text = TextMetrics(ter=False).metrics
        names = {TOKEN_NLL, PERPLEXITY, *(f"{FREE_RUNNING}/{name}" for name in of_text)}
        names |= {"train/token_nll", "train/teacher_forcing_ratio", *LOGGED_STEPS}
        history = bound["model"].values.get("history")
        loss_name = None if history is None else history.target.loss_name
        if loss_name is not None:
            names.add(f"train/{loss_name}")
        if training.attention_loss is not None:
            names.add(f"train/{training.attention_loss.name}")
        if training.attention_schedule is not None:
            names.add(ATTENTION_IS_ON)
        normaliser = bound["model"].values.get("normaliser")
        draws = normaliser is not None and normaliser.target.is_drawn
        if draws:
            names.add(f"train/{DRAW_ENTROPY}")
        if loss_name or training.attention_loss or training.label_smoothing or draws:
            names.add("train/loss")
        return names

    def check_data(self, experiment: Experiment, data: PreparedData) -> None:
        """As `Task.check_data`, and warn where a search would cut off references of its split."""
        super().check_data(experiment, data)
        attention_loss = experiment.training.attention_loss
        # Words that the vocabulary lacks are refused here, before anything is built.
        read_source_vocabulary(attention_loss, data.source_tokenizer)
        self.warn_without_features(experiment, data.source_tokenizer)
        needs_links = attention_loss is not None and attention_loss.needs_links
        if needs_links and not data.info.has_alignments:
            raise ExperimentError(
                "training.attention_loss learns from gold links, but this data has none; choose "
                "data with known alignments (data=dates, data.alignments=<column>), or another "
                "training/attention_loss"
            )
        output = experiment.model.values["output"].target
        if output.only_copies:
            _check_targets_can_be_copied(output, data)
        searches = {
            "training.validation_search": experiment.training.validation_search,
            "search": experiment.search,
        }
        _check_longest_target(experiment, data, searches)
        if experiment.training.monitor == "bleu":
            _check_bleu_is_defined(data)
        for split, (path, search) in zip(("validation", "test"), searches.items(), strict=True):
            _warn_of_long_references(data, split, path, search)

    def sizes(self, data: PreparedData) -> dict[str, int]:
        return {
            "source_vocabulary_size": data.source_tokenizer.size,
            "target_vocabulary_size": data.target_tokenizer.size,
        }

    def read_vocabulary(self, model: Seq2Seq, data: PreparedData) -> None:
        model.encoder.name_features(data.source_tokenizer.feature_ids)

    def module(
        self, experiment: Experiment, model: Seq2Seq, data: PreparedData
    ) -> pl.LightningModule:
        from attnlab.tasks.translation.metrics import TextMetrics
        from attnlab.tasks.translation.module import Seq2SeqModule

        # Prepared data may be opened without `check_data`.
        read_source_vocabulary(experiment.training.attention_loss, data.source_tokenizer)
        validation = data.split("validation")
        return Seq2SeqModule(
            model,
            experiment.training,
            TextMetrics(data.info.bleu_tokenize, ter=False),
            decode=partial(_decode, data, validation),
            references=lambda rows: [validation.target_text(row) for row in rows],
            seed=experiment.seed,
            links=self._links(experiment, data),
            graphs=experiment.hardware.graphs,
        )

    def _links(self, experiment: Experiment, data: PreparedData) -> Links | None:
        """The gold links of the training split, where the attention loss reads them."""
        loss = experiment.training.attention_loss
        if loss is None or not loss.needs_links:
            return None
        train = data.split("train")
        if loss.links == "sure":
            return partial(train.links, "sure")
        return lambda row: np.concatenate([train.links("sure", row), train.links("possible", row)])

    def pictures(self, experiment: Experiment, data: PreparedData) -> Pictured:
        from attnlab.runs.pictures import Pictures, write_heat_maps
        from attnlab.tasks.translation.hypotheses import example_maps

        def draw(module: Any) -> Pictures | None:
            search = experiment.training.validation_search
            count = experiment.tracking.heat_map_sentences
            change = module.validated_intervention
            maps = example_maps(module.model, search, data, "validation", count, change)
            return Pictures(maps, partial(write_heat_maps, maps)) if maps else None

        return draw

    def evaluate(
        self,
        experiment: Experiment,
        model: Path,
        data: PreparedData,
        into: Path,
        progress: Progress,
    ) -> Metrics:
        from attnlab.search.ensemble import load_members

        models = load_members(
            model,
            experiment.ensemble_folders,
            experiment.hardware.device,
            set(target_modules(experiment.config)),
        )
        found = self.measure(experiment, models, data, progress)
        found.write(into)
        return found.metrics

    def measure(
        self,
        experiment: Experiment,
        models: Sequence[Seq2Seq],
        data: PreparedData,
        progress: Progress,
    ) -> Evaluation:
        """What the models are worth on the test split; several are an ensemble."""
        from attnlab.tasks.translation.evaluation import evaluate

        return evaluate(models, experiment.search, data, progress=progress)

    def predictor(self) -> type[Predictor]:
        from attnlab.tasks.translation.translator import Translator

        return Translator

    def example(self, data: PreparedData) -> str:
        return short_text(data.split("validation"))

    def explorer_page(self, predictor: Any) -> ExplorerPage:
        from attnlab.tasks.translation.explorer_page import page_of

        return page_of(predictor)

    def report_section(self) -> ReportSection:
        from attnlab.tasks.translation.report.section import TranslationSection

        return TranslationSection()


def _warn_of_long_references(data: PreparedData, name: str, path: str, search: Search) -> None:
    """Warn where more than a hundredth of a split's references cannot be written.

    name: of the split. path: of the search in the config.
    """
    split = data.split(name)
    # With <eos>, as the limits count.
    limits = search.limits(torch.from_numpy(split.source_lengths + 1)).numpy()
    is_too_long = split.target_lengths + 1 > limits
    share_too_long = float(is_too_long.mean())
    if share_too_long > 0.01:
        print(
            f"warning: {share_too_long:.0%} of the {name} split's references are longer than "
            f"{path} can write; raise {path}.max_length ({search.max_length}) or "
            f"max_length_ratio ({search.max_length_ratio})",
            file=sys.stderr,
        )


def _check_longest_target(
    experiment: Experiment, data: PreparedData, searches: Mapping[str, Search]
) -> None:
    """Raise ExperimentError where a target is longer than the decoder can write.

    searches: those that write, by their paths in the config.
    """
    decoder = experiment.model.values["decoder"]
    setting = decoder.target.longest_target
    most = None if setting is None else decoder.values[setting]
    if most is None:
        return
    limit = (
        f"{decoder.path}.{setting} is {most}, the tokens (`<bos>` included) of the longest target"
    )
    split, longest = longest_of(data, "target")
    if longest > most:
        raise ExperimentError(
            f"{limit}, but the {split} split has a target of {longest}; raise it to {longest}"
        )
    for path, search in searches.items():
        if search.max_length > most:
            raise ExperimentError(
                f"{limit}, but {path}.max_length lets a search write {search.max_length}; raise "
                f"the one to {search.max_length}, or lower the other to {most}"
            )


def _check_bleu_is_defined(data: PreparedData) -> None:
    """Raise ExperimentError where BLEU cannot tell one checkpoint from another."""
    validation = data.split("validation")
    tokenize = data.info.bleu_tokenize
    references = [validation.target_text(row) for row in range(len(validation))]
    if any(len(reference.split()) >= 4 for reference in references):
        return  # sacrebleu's tokenizers take words apart, and put none together

    from attnlab.evaluation.sentence_statistics import bleu_metric
    from attnlab.tasks.translation.metrics import has_four_grams  # imports torchmetrics

    if not has_four_grams(references, bleu_metric(tokenize)):
        raise ExperimentError(
            "training.monitor is bleu, which is 0 whatever is written, for no reference of the "
            f"validation split has four words (as data.bleu_tokenize={tokenize} counts them); "
            "choose training.monitor=exact_match, chrf or token_nll"
        )


def _check_targets_can_be_copied(output: type[Output], data: PreparedData) -> None:
    """Count the pairs whose target has a token that the source lacks.

    output: one that only copies.

    Raises ExperimentError where these are all pairs of the training split.
    """
    for name in ("train", "validation", "test"):
        split = data.split(name)
        lacking = sum(
            not np.isin(split.target[row], split.source[row]).all() for row in range(len(split))
        )
        if lacking == len(split) and name == "train":
            raise ExperimentError(
                f"model/output ({output.__name__}) writes tokens of the source alone, but every "
                "target of the training split has a token that its source lacks; choose other "
                "data, or model/output=pointer_generator, which also writes from the vocabulary"
            )
        if lacking:
            print(
                f"warning: {lacking} of the {len(split)} pairs of the {name} split have a target "
                f"token that the source lacks, which model/output ({output.__name__}) cannot "
                "write; each such token has the probability 0 and adds 87 nats to the loss",
                file=sys.stderr,
            )


def _decode(
    data: PreparedData, split: PreparedSplit, rows: Sequence[int], targets: Sequence[Sequence[int]]
) -> list[str]:
    """The texts of targets that were written for rows of a split."""
    sources = [split.source_text(row) for row in rows]
    words = data.source_tokenizer.numbered_words(sources)
    return [
        data.target_tokenizer.decode(target, numbered=its_words)
        for target, its_words in zip(targets, words, strict=True)
    ]
