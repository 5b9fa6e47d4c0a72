"""An experiment in a notebook: composed as on the command line, trained by any `pl.Trainer`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pytorch_lightning as pl

from attnlab.data.datamodule import SeqDataModule
from attnlab.data.prepared import Prepared
from attnlab.experiment.composition import compose
from attnlab.experiment.preparation import prepare
from attnlab.experiment.training import make_batches, make_module
from attnlab.tasks.predictor import Predictor
from attnlab.tasks.task import Experiment


class NotebookExperiment(Experiment):
    """A checked config, with its data, its LightningModule and its batches."""

    @classmethod
    def compose(cls, overrides: Sequence[str] = ()) -> NotebookExperiment:
        """As Hydra composes it; raises ExperimentError with every problem."""
        experiment = compose(overrides)
        return cls(**{field.name: getattr(experiment, field.name) for field in fields(experiment)})

    def prepare(self) -> Any:
        """Its prepared data, under `paths.runs`; made where they are missing.

        Raises ExperimentError where the corpus cannot be read, or the model could not read some
        sentence of it.
        """
        return prepare(self)

    def module(self, data: Prepared) -> pl.LightningModule:
        """What trains and validates the model; the same seed gives the same weights each time.

        This applies `hardware.threads` and `matmul_precision` to the process, as a command does.
        """
        self.hardware.apply()
        return make_module(self, data)

    def datamodule(self, data: Prepared) -> SeqDataModule:
        """The batches of training and validation."""
        return make_batches(self, data)

    def predictor(self, module: pl.LightningModule, data: Prepared) -> Predictor:
        """The module's model, as `attnlab.load` returns a saved one.

        This puts the model in evaluation mode.
        """
        model: Any = module.model
        kind = self.task.predictor()
        return kind.of_data(model.eval(), data, self.values["search"], self.data.cleaning)
