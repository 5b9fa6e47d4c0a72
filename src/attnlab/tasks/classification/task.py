"""The task of classification: sentences to labels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from attnlab.batch import Padding
from attnlab.config.identity import target_modules
from attnlab.config.part import Part
from attnlab.data.corpus import SentenceCorpus
from attnlab.data.prepared import LabelledData, short_text
from attnlab.data.row_kinds import Sentences
from attnlab.model.classifier import Classifier
from attnlab.model.model_folder import load_classifier
from attnlab.model.trial_pass import trial_batch
from attnlab.progress import Progress
from attnlab.runs.shared_views import View
from attnlab.tasks.classification.settings import CLASSIFIED, ClassificationTraining
from attnlab.tasks.task import Experiment, Metrics, Pictured, Task
from attnlab.training.attention_losses.attention_loss import (
    check_hard,
    check_learns,
    check_signs,
    read_source_vocabulary,
)
from attnlab.training.reinforcement import DRAW_ENTROPY, draw_problems
from attnlab.training.settings import LOGGED_STEPS

if TYPE_CHECKING:
    import pytorch_lightning as pl

    from attnlab.tasks.predictor import ExplorerPage, Predictor
    from attnlab.tasks.report_section import ReportSection


class Classification(Task[LabelledData]):
    """Sentences to labels, by an encoder that looks back once."""

    name = "classification"
    sections = {  # noqa: RUF012
        "data": SentenceCorpus,
        "model": Part[Classifier],
        "search": None,
        "training": ClassificationTraining,
    }
    rows = Sentences
    prepared = LabelledData
    trial_sizes = {"source_vocabulary_size": 8, "num_classes": 3}  # noqa: RUF012
    without_corpus = ("data.path=unread",)
    main_metrics = ("accuracy", "f1", "nll")
    view = View(
        name,
        "Which attention classifies best",
        metrics=("test/accuracy", "test/f1", "test/nll"),
        curves=("validation/accuracy", "validation/f1", "validation/nll"),
        images=("sentences", "confusion_matrix"),
    )

    def check(self, bound: Mapping[str, Any]) -> list[str]:
        if bound["paths"].ensemble:
            return ["paths.ensemble must be null: only models that translate are put together"]
        if bound["hardware"].graphs:
            return ["hardware.graphs must be false: a classifier has no loop that it would shorten"]
        loss = bound["training"].attention_loss
        if loss is not None and loss.needs_links:
            return [
                "training.attention_loss learns from gold links, which labelled sentences have "
                "not; choose training/attention_loss=none, entropy or impermissible_mass"
            ]
        model = bound["model"].values
        normaliser = model.get("normaliser")
        return [
            *check_signs(loss, normaliser),
            *check_hard(loss, normaliser),
            *check_learns(loss, model),
            *draw_problems(loss, normaliser),
        ]

    def check_data(self, experiment: Experiment, data: LabelledData) -> None:
        """As `Task.check_data`, and refuse words of an attention loss that the vocabulary lacks."""
        super().check_data(experiment, data)
        read_source_vocabulary(experiment.training.attention_loss, data.tokenizer)
        self.warn_without_features(experiment, data.tokenizer)

    def trial_loss(self, model: Classifier, padding: Padding) -> Tensor:
        batch = trial_batch(padding)
        return model(batch.source, batch.source_mask).log_probabilities.sum()

    def monitored(self, bound: Mapping[str, Any]) -> set[str]:
        training = bound["training"]
        names = {f"{CLASSIFIED}/{name}" for name in ("accuracy", "f1", "nll")}
        names |= {"train/nll", *LOGGED_STEPS}
        if training.attention_loss is not None:
            names.add(f"train/{training.attention_loss.name}")
        draws = bound["model"].values["normaliser"].target.is_drawn
        if draws:
            names.add(f"train/{DRAW_ENTROPY}")
        if training.attention_loss or training.label_smoothing or draws:
            names.add("train/loss")
        return names

    def sizes(self, data: LabelledData) -> dict[str, int]:
        return {"source_vocabulary_size": data.tokenizer.size, "num_classes": len(data.labels)}

    def read_vocabulary(self, model: Classifier, data: LabelledData) -> None:
        model.encoder.name_features(data.tokenizer.feature_ids)

    def module(
        self, experiment: Experiment, model: Classifier, data: LabelledData
    ) -> pl.LightningModule:
        from attnlab.tasks.classification.module import ClassifierModule

        # Prepared data may be opened without `check_data`.
        read_source_vocabulary(experiment.training.attention_loss, data.tokenizer)
        return ClassifierModule(model, experiment.training, len(data.labels))

    def pictures(self, experiment: Experiment, data: LabelledData) -> Pictured:
        from attnlab.runs.pictures import Pictures, write_sentences
        from attnlab.tasks.classification.evaluation import sentence_maps

        def draw(module: Any) -> Pictures | None:
            maps = sentence_maps(
                module.model, data, "validation", experiment.tracking.heat_map_sentences
            )
            if not maps:
                return None
            confusions = None
            if module.confusions is not None:
                confusions = module.confusions.cpu().numpy()
            return Pictures(maps, partial(write_sentences, maps, data.labels, confusions))

        return draw

    def evaluate(
        self,
        experiment: Experiment,
        model: Path,
        data: LabelledData,
        into: Path,
        progress: Progress,
    ) -> Metrics:
        from attnlab.runs.pictures import write_sentences
        from attnlab.tasks.classification.evaluation import classify_split

        classifier = load_classifier(
            model, experiment.hardware.device, set(target_modules(experiment.config))
        )
        found = classify_split(classifier, data, progress=progress)
        found.write(into)
        write_sentences(found.maps, found.labels, found.confusions, into, "Test split")
        return found.metrics

    def predictor(self) -> type[Predictor]:
        from attnlab.tasks.classification.classifier import SentenceClassifier

        return SentenceClassifier

    def example(self, data: LabelledData) -> str:
        return short_text(data.split("validation"))

    def explorer_page(self, predictor: Any) -> ExplorerPage:
        from attnlab.tasks.classification.analysis import page_of

        return page_of(predictor)

    def report_section(self) -> ReportSection:
        from attnlab.tasks.classification.report.section import ClassificationSection

        return ClassificationSection()
