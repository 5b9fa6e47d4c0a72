"""Small things that several test folders share. torch is imported only where a test asks for a model."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the suite's models are tiny; threads would only wait for each other
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

VOCABULARY = {"source_vocabulary_size": 11, "target_vocabulary_size": 9}


@pytest.fixture
def tiny_model() -> Callable[..., Any]:
    """Builds a Seq2Seq of a few units in evaluation mode; every choice of the composition can be changed."""
    import torch

    from attnlab.batch import Padding
    from attnlab.composition.part import Part
    from attnlab.model.attention.bahdanau import BahdanauScore
    from attnlab.model.attention.dot import DotScore
    from attnlab.model.attention.general import GeneralScore
    from attnlab.model.bridge.copy import CopyBridge
    from attnlab.model.bridge.linear import LinearBridge
    from attnlab.model.bridge.zero import ZeroBridge
    from attnlab.model.decoder.attend_then_step import AttendThenStep
    from attnlab.model.decoder.no_attention import NoAttention
    from attnlab.model.decoder.step_then_attend import StepThenAttend
    from attnlab.model.encoder import Encoder
    from attnlab.model.seq2seq import Seq2Seq

    scores = {"dot": Part(DotScore), "general": Part(GeneralScore), "bahdanau": Part(BahdanauScore, size=5)}
    bridges = {"linear": LinearBridge, "copy": CopyBridge, "zero": ZeroBridge}
    decoders = {
        "attend_then_step": AttendThenStep,
        "step_then_attend": StepThenAttend,
        "no_attention": NoAttention,
    }

    def build(
        *,
        cell: str = "gru",
        decoder_cell: str | None = None,
        bidirectional: bool = True,
        layers: int = 1,
        decoder_layers: int | None = None,
        bridge: str = "linear",
        decoder: str = "attend_then_step",
        attention: Any = "default",
        context: str = "initial_state",
        hidden_size: int = 4,
        decoder_hidden_size: int | None = None,
        dropout: float = 0.0,
        padding: Padding = Padding(),  # noqa: B008 (frozen)
        seed: int = 1,
        dtype: torch.dtype = torch.float64,
        scale: float = 1.0,
        source_vocabulary_size: int = VOCABULARY["source_vocabulary_size"],
        target_vocabulary_size: int = VOCABULARY["target_vocabulary_size"],
    ) -> Seq2Seq:
        width = hidden_size * (2 if bidirectional else 1)
        recurrence = {
            "cell": decoder_cell or cell,
            "embedding_size": 3,
            "hidden_size": decoder_hidden_size or width,
            "readout_size": 7,
            "layers": decoder_layers or layers,
            "dropout": dropout,
        }
        if decoder == "no_attention":
            recurrence["context"] = context
        if attention == "default":
            attention = None if decoder == "no_attention" else "bahdanau"
        torch.manual_seed(seed)
        part = Part(
            Seq2Seq,
            "model",
            encoder=Part(
                Encoder,
                "model.encoder",
                cell=cell,
                embedding_size=6,
                hidden_size=hidden_size,
                layers=layers,
                bidirectional=bidirectional,
                dropout=dropout,
            ),
            bridge=Part(bridges[bridge], "model.bridge"),
            attention=scores[attention] if isinstance(attention, str) else attention,
            decoder=Part(decoders[decoder], "model.decoder", **recurrence),
        )
        model = part(
            source_vocabulary_size=source_vocabulary_size,
            target_vocabulary_size=target_vocabulary_size,
            padding=padding,
        )
        with torch.no_grad():
            for parameter in model.parameters():
                parameter *= scale  # small models at birth hardly prefer any token
        return model.to(dtype).eval()

    return build


@pytest.fixture
def pairs() -> Callable[..., tuple[list[list[int]], list[list[int]]]]:
    """Draws source and target ids (no special tokens among them) of the lengths given."""
    import numpy as np

    def draw(
        source_lengths: tuple[int, ...] = (5, 2, 7, 1), target_lengths: tuple[int, ...] = (3, 6, 1, 4), seed: int = 3
    ) -> tuple[list[list[int]], list[list[int]]]:
        random = np.random.default_rng(seed)
        sizes = VOCABULARY["source_vocabulary_size"], VOCABULARY["target_vocabulary_size"]
        return tuple(  # type: ignore[return-value]
            [random.integers(4, size, length).tolist() for length in lengths]
            for size, lengths in zip(sizes, (source_lengths, target_lengths), strict=True)
        )

    return draw
