"""Fixtures and markers of the whole suite. torch is imported only where a test asks for a model."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import settings

from quick_hydra import compose_quickly

# The suite's models are tiny; threads would only wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

# HYPOTHESIS_PROFILE=campaign tries more examples (`make test-faults`), except in tests that set
# their own number of them.
settings.register_profile("suite", deadline=None)
settings.register_profile("campaign", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


def pytest_configure() -> None:
    compose_quickly()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = slow_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def slow_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Order the tests so that each worker begins with its share of the slow modules.

    So no worker starts a long test at the end. Workers begin with equal parts of the list, one
    after the other, and then take from each other's ends.
    """
    modules: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow") is not None or "faults" in item.path.parts:
            modules.setdefault(item.path, []).append(item)
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for module in sorted(modules.values(), key=len, reverse=True):
        min(shares, key=len).extend(module)
    slow = set(chain.from_iterable(shares))
    others = iter([item for item in items if item not in slow])
    size = -(-len(items) // workers)
    return [
        item for share in shares for item in (*share, *islice(others, max(0, size - len(share))))
    ] + list(others)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # Commands obey these, and MLflow sets them in the process of an earlier test.
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        os.environ.pop(name, None)
    if "mlflow" in sys.modules:
        sys.modules["mlflow"].set_tracking_uri(None)
    if item.get_closest_marker("bfloat16") is not None:
        from attnlab.training.hardware import cpu_has_bfloat16

        if not cpu_has_bfloat16():
            pytest.skip("this processor does not compute in bfloat16")


@pytest.fixture(autouse=True)
def _subnormal_numbers() -> None:
    """Undo what a command in this process set: that torch makes zeros of numbers below 1e-38."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)


VOCABULARY = {"source_vocabulary_size": 11, "target_vocabulary_size": 9}


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The path of a `python` that starts at once (see `warm_python.py`)."""
    here, program = str(Path(__file__).parent), tmp_path_factory.mktemp("warm") / "python"
    address = f"attnlab-tests-{os.getpid()}"
    imports = f"import sys; sys.path.insert(0, {here!r}); from warm_python import"
    attnlab = str(Path(sys.executable).with_name("attnlab"))
    for started, words in ((program, "[]"), (program.with_name("attnlab"), f"[{attnlab!r}]")):
        asking = f"{imports} ask; ask({address!r}, {words} + sys.argv[1:])"
        started.write_text(f"#!{sys.executable} -IS\n{asking}\n")
        started.chmod(0o755)
    serving = [sys.executable, "-c", f"{imports} serve; serve({address!r})"]
    with subprocess.Popen(serving, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield program
        server.terminate()


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database without runs, made once for all workers: its migrations take seconds."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with FileLock(shared / "mlflow.lock"):
        if not (database := shared / "mlflow.db").exists():
            from mlflow import MlflowClient

            MlflowClient(tracking_uri=f"sqlite:///{database}").search_experiments()
    return database


@pytest.fixture
def tiny_model() -> Callable[..., Any]:
    """Builds a Seq2Seq of a few units in evaluation mode, with any choice of the composition.

    Choices are names of YAML files in conf/model (and the scope `local_p_renormalised`, and a
    first-order output that goes `_both_ways`); `decoder` brings its own bridge, readout and
    attention as there.
    """
    import torch
    from composed_variants import SMALL, Variant, choices_of, names_of, part_of

    from attnlab.batch import Padding
    from attnlab.config.part import Part
    from attnlab.model.seq2seq import Seq2Seq

    def build(
        *,
        encoder: str = "recurrent",
        cell: str = "gru",
        decoder_cell: str | None = None,
        bidirectional: bool = True,
        merge: str = "concatenate",
        reverse_source: bool = False,
        layers: int = 1,
        decoder_layers: int | None = None,
        bridge: str | None = None,
        decoder: str = "attend_then_step",
        attention: Any = "default",
        projection: int | None = None,
        normaliser: str = "softmax",
        scope: str = "global",
        history: str | Part[Any] = "none",
        heads: int | None = None,
        gate: str = "none",
        attention_dropout: float = 0.0,
        context: str | None = None,
        readout: str | None = None,
        readout_size: int = 7,
        output: str | Part[Any] = "linear",
        input_feeding: str = "none",
        tied_embeddings: str = "none",
        initialisation: str = "torch",
        hidden_size: int = 4,
        decoder_hidden_size: int | None = None,
        embedding_size: int = 6,
        decoder_embedding_size: int = 3,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
        padding: Padding = Padding(),  # noqa: B008 (frozen)
        seed: int = 1,
        dtype: torch.dtype = torch.float64,
        scale: float = 1.0,
        source_vocabulary_size: int = VOCABULARY["source_vocabulary_size"],
        target_vocabulary_size: int = VOCABULARY["target_vocabulary_size"],
    ) -> Seq2Seq:
        width = hidden_size * (2 if bidirectional and merge == "concatenate" else 1)
        encoder_layers = layers
        encoder_part = part_of(
            "encoder",
            cell,
            embedding_size=embedding_size,
            hidden_size=hidden_size,
            layers=layers,
            bidirectional=bidirectional,
            merge=merge,
            reverse_source=reverse_source,
            word_dropout=word_dropout,
            dropout=dropout,
            layer_dropout=dropout,
            output_dropout=dropout,
        )
        if encoder != "recurrent":
            # Its final state is the mean of its outputs, which are as wide as the embeddings.
            width, encoder_layers = embedding_size, 1
            dropouts = {"word_dropout": word_dropout, "dropout": dropout, "block_dropout": dropout}
            sizes = {"embedding_size": embedding_size, "hidden_size": hidden_size}
            encoder_part = part_of("encoder", encoder, SMALL | sizes | dropouts)
        if isinstance(history, str) and history.startswith("soft_"):  # the mean over all choices
            history = part_of("history", history.removeprefix("soft_"), hard=False) or history
        names = names_of(choices_of(Variant("decoder", decoder)))
        if not isinstance(attention, Part):
            attention = part_of(
                "attention", names["attention"] if attention == "default" else attention or "none"
            )
        window = {"renormalise": True} if scope == "local_p_renormalised" else {}
        if isinstance(output, str):
            directions = {"monotonic": False} if output.endswith("_both_ways") else {}
            output = part_of("output", output.removesuffix("_both_ways"), **directions) or output
        # torch.manual_seed writes the stack down for devices that are not there.
        torch.default_generator.manual_seed(seed)
        part = Part(
            Seq2Seq,
            "model",
            encoder=encoder_part,
            bridge=part_of("bridge", bridge or names["bridge"]),
            attention=attention,
            projection=None
            if projection is None
            else part_of("projection", "linear", size=projection),
            normaliser=part_of("normaliser", normaliser),
            scope=part_of("scope", scope.removesuffix("_renormalised"), **window),
            history=part_of("history", history) if isinstance(history, str) else history,
            heads=None if heads is None else part_of("heads", "multi", heads=heads, size=3),
            gate=part_of("gate", gate),
            attention_dropout=attention_dropout,
            decoder=part_of(
                "decoder",
                decoder,
                {
                    "cell": decoder_cell or cell,
                    "embedding_size": decoder_embedding_size,
                    "hidden_size": decoder_hidden_size or width,
                    "layers": decoder_layers or encoder_layers,
                    "word_dropout": word_dropout,
                    "dropout": dropout,
                    "layer_dropout": dropout,
                    # Of a Transformer, whose embeddings may have any width here
                    "self_attention_heads": 1,
                    "feed_forward_size": 5,
                    "positions": "learned",
                    "longest": 16,
                    "block_dropout": dropout,
                },
                **({"context": context} if context else {}),
            ),
            readout=part_of(
                "readout",
                readout or names["readout"],
                SMALL | {"size": readout_size},
                dropout=dropout,
            ),
            output=output,
            input_feeding=part_of("input_feeding", input_feeding),
            tied_embeddings=tied_embeddings,
            initialisation=(drawn := part_of("initialisation", initialisation)) and drawn(),
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


@pytest.fixture(scope="session")
def copy_corpus() -> Callable[..., Any]:
    """Builds a corpus of short sequences to copy, or of another kind that takes the same values."""
    from attnlab.data.toy import CopyCorpus
    from attnlab.data.trainers import WordTrainer

    def build(kind: type = CopyCorpus, **changed: Any) -> Any:
        values = {
            "num_pairs": 60,
            "num_symbols": 5,
            "min_length": 1,
            "max_length": 6,
            "test_min_length": None,
            "test_max_length": None,
            "distinct": False,
            "validation_fraction": 0.1,
            "test_fraction": 0.1,
            "seed": 1,
            "bleu_tokenize": "none",
            "tokenizer": WordTrainer(split="whitespace", min_frequency=1),
        }
        return kind(**(values | changed))

    return build


@pytest.fixture(scope="session")
def copies(tmp_path_factory: pytest.TempPathFactory, copy_corpus: Callable[..., Any]) -> Any:
    """24 test pairs of 1 to 6 of 8 symbols to copy, 2 of which are in the vocabulary."""
    from attnlab.data.prepare import prepare
    from attnlab.data.prepared import PreparedData
    from attnlab.data.row_kinds import Pairs
    from attnlab.data.trainers import WordTrainer

    folder = tmp_path_factory.mktemp("copies") / "data"
    tokenizer = WordTrainer(split="whitespace", vocabulary_size=6, min_frequency=1)
    prepare(copy_corpus(num_symbols=8, test_fraction=0.4, tokenizer=tokenizer), Pairs, folder)
    return PreparedData(folder)


@pytest.fixture(scope="session")
def translator_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of a tiny translator."""
    from tiny_folders import write_translator

    return write_translator(tmp_path_factory.mktemp("translator"))


@pytest.fixture(scope="session")
def classifier_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of a tiny classifier."""
    from tiny_folders import write_classifier

    return write_classifier(tmp_path_factory.mktemp("classifier"))


@pytest.fixture
def pairs() -> Callable[..., tuple[list[list[int]], list[list[int]]]]:
    """Draws source and target ids (no special tokens among them) of the lengths given."""
    import numpy as np

    def draw(
        source_lengths: tuple[int, ...] = (5, 2, 7, 1),
        target_lengths: tuple[int, ...] = (3, 6, 1, 4),
        seed: int = 3,
    ) -> tuple[list[list[int]], list[list[int]]]:
        random = np.random.default_rng(seed)
        sizes = VOCABULARY["source_vocabulary_size"], VOCABULARY["target_vocabulary_size"]
        return tuple(  # type: ignore[return-value]
            [random.integers(4, size, length).tolist() for length in lengths]
            for size, lengths in zip(sizes, (source_lengths, target_lengths), strict=True)
        )

    return draw
