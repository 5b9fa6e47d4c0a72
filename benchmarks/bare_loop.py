"""A bare training loop around attnlab's model, data and optimiser, without its pipelines.

It is the loop that a user would write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from attnlab.batch import Batch
from attnlab.data.sampler import BatchSampler
from attnlab.experiment.composition import compose
from attnlab.model.fast import speed_up
from attnlab.training.loss import summed_loss, summed_nll
from attnlab.training.optimisation import make_scheduler
from attnlab.training.teacher_forcing import toss


class BareLoop:
    """One process on the CPU.

    Model, batches and optimiser are those of an experiment's overrides.
    """

    def __init__(self, overrides: Sequence[str], prepared: Path, steps: int) -> None:
        experiment = compose(overrides)
        experiment.use_hardware()
        self.experiment, self.training, self.steps, self.done = (
            experiment,
            experiment.training,
            steps,
            0,
        )
        self.opened = experiment.task.open_data(prepared)
        torch.manual_seed(experiment.seed)
        sizes = experiment.task.sizes(self.opened)
        self.model = speed_up(experiment.model(**sizes, padding=experiment.padding))
        self.optimizer = self.training.optimizer(self.model.parameters())
        entry = make_scheduler(self.training.schedule, self.optimizer, steps, "", "max")
        self.schedule = entry["scheduler"]
        self.half = torch.autocast(
            "cpu", torch.bfloat16, enabled=experiment.hardware.precision == "bf16"
        )

    def batches(self, split: str, shuffle: bool) -> Iterator[Batch]:
        """One epoch of a split."""
        data = self.opened.split(split)
        lengths = data.source_lengths, data.target_lengths
        for rows in BatchSampler(
            *lengths, self.training.batching, seed=self.experiment.seed, shuffle=shuffle
        ):
            yield data.batch(rows, self.experiment.padding)

    def training_batches(self) -> Iterator[Batch]:
        """One epoch after the other, until all steps are done."""
        while True:
            for batch in self.batches("train", shuffle=True):
                yield batch
                if self.done == self.steps:
                    return

    def step(self, batch: Batch) -> None:
        """One step of training."""
        feed_reference = toss(self.training.teacher_forcing, self.done, batch, self.experiment.seed)
        with self.half:
            unrolled = self.model(batch, feed_reference)
            loss = summed_loss(
                self.model.output, unrolled, batch, self.training.label_smoothing
            ).loss
        self.optimizer.zero_grad()
        (loss / batch.num_target_tokens).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.training.gradient_clip)
        self.optimizer.step()
        self.schedule.step()
        self.done += 1

    def validate(self) -> None:
        """The validation split teacher-forced, and searched."""
        self.model.eval()
        with torch.no_grad(), self.half:
            for batch in self.batches("validation", shuffle=False):
                summed_nll(self.model.output, self.model(batch), batch)
                self.training.validation_search(self.model, batch.source, batch.source_mask)
        self.model.train()
