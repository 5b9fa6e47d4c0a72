"""Passes over batches of one shape as CUDA graphs, which launch all kernels of a pass at once.

A decoder's loop in Python launches more than a thousand small kernels in a training step, and the
GPU waits for them. A graph records them once, for one shape of a batch, and starts them together.

Axes: B batch, S source length, T target length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from attnlab.batch import Batch, Padding
from attnlab.errors import ExperimentError
from attnlab.model.outputs.output import Reading
from attnlab.model.seq2seq import Seq2Seq
from attnlab.model.unrolled import Unrolled

# Batches get pads until their lengths are multiples of this. Without it, most batches of a real
# corpus would have a shape of their own.
LENGTHS = 8
# A graph keeps a copy of all gradients, so that their number must have an end.
MOST_GRAPHS = 64
# A shape is captured when it is met for the second time: many are met once only.
MEETINGS = 2

BESIDE_THE_READING = tuple(field.name for field in fields(Unrolled) if field.name != "reading")

Shape = tuple[int, int, int]  # B, S, T
Capture = Callable[..., Any]


def graph_problems(bound: Mapping[str, Any]) -> list[str]:
    """What of an experiment's sections does not go with `hardware.graphs`."""
    if not bound["hardware"].graphs:
        return []
    problems = []
    padding: Padding = bound["padding"]
    if padding.recurrence == "read" or not padding.attention_masked:
        problems.append(
            "hardware.graphs must be false where pads are read, since graphs need more of them; "
            "choose padding.recurrence=skip and padding.attention_masked=true"
        )
    if bound["training"].accumulate > 1:
        problems.append(
            "hardware.graphs must be false with training.accumulate above 1: a graph writes its "
            "gradients into the same place each time"
        )
    output = bound["model"].values.get("output")
    if output is not None and output.target.reads_each_value:
        problems.append(
            f"hardware.graphs must be false with the output {output.target.__name__}, whose loss "
            "reads the source's values again; choose another model/output"
        )
    return problems


def lengthened(batch: Batch, padding: Padding, multiple: int = LENGTHS) -> Batch:
    """The batch with more pads, on their own sides, so that S and T are multiples of a number."""

    def longer(tensor: Tensor, side: str) -> Tensor:
        missing = -tensor.shape[1] % multiple
        return pad(tensor, (missing, 0) if side == "pre" else (0, missing))  # with 0, PAD or False

    # A GPU would have to be asked for it.
    tokens = batch.num_target_tokens
    longer_batch = replace(
        batch,
        source=longer(batch.source, padding.encoder),
        source_mask=longer(batch.source_mask, padding.encoder),
        target_input=longer(batch.target_input, padding.decoder),
        target_output=longer(batch.target_output, padding.decoder),
        target_mask=longer(batch.target_mask, padding.decoder),
    )
    vars(longer_batch)["num_target_tokens"] = tokens
    return longer_batch


class GraphedPasses:
    """A model's pass in training, as a CUDA graph for each shape that is met again.

    It computes what `model(batch)` computes. The loss stays outside of it: how many tokens are
    real differs from batch to batch.

    Args:
        model: of whose weights a graph remembers where they lie in memory.
        capture: as `torch.cuda.make_graphed_callables`.
    """

    def __init__(self, model: Seq2Seq, capture: Capture | None = None) -> None:
        self._model = model
        self._capture = torch.cuda.make_graphed_callables if capture is None else capture
        self._met: Counter[Shape] = Counter()
        self._graphs: dict[Shape, TensorPass] = {}
        self._pool: Any = None
        # Passes with and without a graph take turns, on two streams, between which torch
        # synchronises; it warns that this takes time.
        if hasattr(torch.autograd.graph, "set_warn_on_accumulate_grad_stream_mismatch"):
            torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)

    @property
    def graphs(self) -> int:
        """How many shapes were captured."""
        return len(self._graphs)

    def __call__(self, batch: Batch) -> Unrolled:
        """The pass over a batch in which the reference is fed everywhere.

        The next call overwrites the numbers of a graph's pass, and so does the next backward pass
        its gradients.

        Raises ExperimentError for a model that cannot be captured.
        """
        shape = (*batch.source.shape, batch.target_input.shape[1])
        graph = self._graphs.get(shape)
        if graph is None:
            self._met[shape] += 1
            if self._met[shape] < MEETINGS or len(self._graphs) == MOST_GRAPHS:
                return self._model(batch)
            graph = self._captured(batch)
            self._graphs[shape] = graph
        return graph.unrolled(graph(*_tensors(batch)))

    def _captured(self, batch: Batch) -> TensorPass:
        """The pass over batches of this one's shape as a graph."""
        # A graph is only replayed after the step of another one has ended, so all share their
        # memory.
        if self._pool is None and torch.cuda.is_available():
            self._pool = torch.cuda.graph_pool_handle()
        passed = TensorPass(self._model)
        # A graph reads the weights at each replay; a cast copy that autocast keeps would be old.
        kind = batch.source.device.type
        autocast = torch.autocast(
            kind,
            torch.get_autocast_dtype(kind),
            enabled=torch.is_autocast_enabled(kind),
            cache_enabled=False,
        )
        example = tuple(tensor.clone() for tensor in _tensors(batch))
        try:
            with autocast:
                self._capture(passed, example, allow_unused_input=True, pool=self._pool)
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise ExperimentError(
                "hardware.graphs must be false for this model, whose pass asks the GPU for a "
                f"number before it goes on ({reason})"
            ) from error
        return passed


class TensorPass(nn.Module):
    """The pass of a model, from tensors to tensors by name, as a capture needs it."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model
        self._reading: Reading | None = None

    def forward(self, *tensors: Tensor) -> dict[str, Tensor]:
        """Tensors in the order of a batch's fields -> those of an `Unrolled`, by their names."""
        unrolled = self.model(Batch(*tensors))
        self._reading = unrolled.reading.with_each(Tensor.detach)
        found = {f"reading.{name}": x for name, x in unrolled.reading.columns().items()}
        for name in BESIDE_THE_READING:
            if getattr(unrolled, name) is not None:
                found[name] = getattr(unrolled, name)
        return found

    def unrolled(self, found: Mapping[str, Tensor]) -> Unrolled:
        """What `forward` returned, as the model returns it."""
        assert self._reading is not None
        columns = {name: found[f"reading.{name}"] for name in self._reading.columns()}
        reading = replace(self._reading, **columns)
        return Unrolled(reading, *(found.get(name) for name in BESIDE_THE_READING))


def _tensors(batch: Batch) -> tuple[Tensor, ...]:
    return tuple(getattr(batch, field.name) for field in fields(batch))
