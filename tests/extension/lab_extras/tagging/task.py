"""The task of sequence tagging."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.config.identity import target_modules
from attnlab.config.part import Part
from attnlab.model.model_folder import load_model
from attnlab.progress import Progress
from attnlab.tasks.task import Experiment, Metrics, Pictured, Task
from attnlab.training.settings import LOGGED_STEPS
from lab_extras.tagging.corpus import TaggedCorpus
from lab_extras.tagging.data import TaggedData, TaggedSentences
from lab_extras.tagging.model import Tagger
from lab_extras.tagging.training import TaggingTraining

if TYPE_CHECKING:
    import pytorch_lightning as pl

    from attnlab.tasks.predictor import Predictor
    from attnlab.tasks.report_section import ReportSection


class Tagging(Task[TaggedData]):
    """A tag for each word of a sentence."""

    name = "tagging"
    sections = {  # noqa: RUF012
        "data": TaggedCorpus,
        "model": Part[Tagger],
        "search": None,
        "training": TaggingTraining,
    }
    rows = TaggedSentences
    prepared = TaggedData
    trial_sizes = {"source_vocabulary_size": 8, "num_tags": 3}  # noqa: RUF012

    def monitored(self, bound: Mapping[str, Any]) -> set[str]:
        return {"validation/nll", "validation/accuracy", "train/nll", *LOGGED_STEPS}

    def sizes(self, data: TaggedData) -> dict[str, int]:
        return {
            "source_vocabulary_size": data.tokenizer.size,
            "num_tags": len(data.info.tags),
        }

    def module(self, experiment: Experiment, model: Tagger, data: TaggedData) -> pl.LightningModule:
        from lab_extras.tagging.training import TaggingModule

        return TaggingModule(model, experiment.training)

    def pictures(self, experiment: Experiment, data: TaggedData) -> Pictured:
        from attnlab.runs.pictures import Pictures, write_heat_maps
        from lab_extras.tagging.evaluation import example_maps

        def draw(module: Any) -> Pictures | None:
            count = experiment.tracking.heat_map_sentences
            maps = example_maps(module.model, data, "validation", count)
            return Pictures(maps, partial(write_heat_maps, maps)) if maps else None

        return draw

    def evaluate(
        self,
        experiment: Experiment,
        model: Path,
        data: TaggedData,
        into: Path,
        progress: Progress,
    ) -> Metrics:
        from lab_extras.tagging.evaluation import evaluate

        allow = set(target_modules(experiment.config))
        tagger = load_model(model, experiment.hardware.device, allow, kind=Tagger)
        return evaluate(tagger, data, into, progress)

    def predictor(self) -> type[Predictor]:
        from lab_extras.tagging.predictor import SentenceTagger

        return SentenceTagger

    def report_section(self) -> ReportSection:
        from lab_extras.tagging.report.section import TaggingSection

        return TaggingSection()
