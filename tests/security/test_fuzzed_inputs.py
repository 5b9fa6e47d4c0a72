"""Odd overrides and odd files end in a sentence or work; nothing else than ExperimentError comes out of a check."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest
from composed_variants import Variant, config_of
from entry_points import TINY
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from attnlab.batch import Padding
from attnlab.config.binding import bind
from attnlab.data.hub_loading import load_splits
from attnlab.data.prepared import PreparedData
from attnlab.errors import ExperimentError
from attnlab.evaluation.attention_map import load_maps
from attnlab.experiment.composition import compose
from attnlab.experiment.hydra_config import compose_config
from attnlab.model.model_folder import ModelFacts, load_model, save_model
from attnlab.model.seq2seq import Seq2Seq

T = TypeVar("T")
MOST = settings.default.max_examples  # 100, or 2,000 of a campaign
LONG = settings(max_examples=MOST, suppress_health_check=[HealthCheck.too_slow])
# Of those that compose, or read a folder.
SLOW = settings(max_examples=max(10, MOST // 8), suppress_health_check=[HealthCheck.too_slow])


def told_or_done(call: Callable[[], T], *places: str) -> T | None:
    """What the call gives, or None where it is refused in sentences, of which one names one of the places."""
    try:
        return call()
    except ExperimentError as error:
        told = error.problems
    assert all(problem.strip() for problem in told)
    assert any(place in problem for place in places for problem in told), told
    return None


@cache
def places() -> list[str]:
    """Every key of the composed config, Hydra's own too."""

    def walk(node: Any, path: str) -> Iterator[str]:
        if isinstance(node, dict):
            for key, value in node.items():
                yield f"{path}{key}"
                yield from walk(value, f"{path}{key}.")

    return sorted(walk(OmegaConf.to_container(compose_config(), resolve=False), ""))


ODD = [
    "null", "true", "1e400", "-0", "nan", "inf", "[]", "{}", "{a:1}", "[[]]", "${seed}", "${nowhere}", "${hydra:x}",
    "???", "${oc.env:NOWHERE}", "${oc.decode:x", "${oc.create:{}}", "${now:%f}", "${..}", "${.}", "${model}",
    "${oc.select:model}", "os.system", "''", "9" * 400, "1,2", "range(1,3)", "glob(*)", "interval(0,1)", "choice(1,2)",
    "tag(a,1)", "\u202e", "\ud83d", "\x00", "a\nb", "~", "../..", "/dev/null", "0x10", "1_000",
]  # fmt: skip
VALUE = st.one_of(
    st.text(max_size=12), st.sampled_from(ODD), st.integers().map(str), st.floats(allow_nan=False).map(str)
)


@st.composite
def override(draw: st.DrawFn) -> str:
    key = draw(st.one_of(st.sampled_from(places()), st.text(max_size=8)))
    key += draw(st.sampled_from(["", "", "", ".x", "/x", "@x", "._target_", "[0]"]))
    return (
        draw(st.sampled_from(["", "", "+", "++", "~"]))
        + key
        + draw(st.sampled_from(["=", "=", "=", "", "=="]))
        + draw(VALUE)
    )


@SLOW
@given(overrides=st.lists(override(), min_size=1, max_size=3))
@example(overrides=["++data.path.x=1"])
@example(overrides=["++model.coverage.x=1"])
@example(overrides=["seed=${oc.create:{}}"])
def test_any_override_is_refused_in_a_sentence_or_works(overrides: list[str]) -> None:
    told_or_done(lambda: compose([*TINY, *overrides]), "")


LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["os.system"])
JSON = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)


@st.composite
def changed(draw: st.DrawFn, original: Any) -> Any:
    """A JSON value with something else at some place of it."""
    if draw(st.integers(0, 3)) == 0 or not isinstance(original, (dict, list)) or not original:
        return draw(JSON)
    key = draw(st.sampled_from(sorted(original) if isinstance(original, dict) else range(len(original))))
    copied = dict(original) if isinstance(original, dict) else list(original)
    copied[key] = draw(changed(original[key]))
    return copied


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzzed")
    for name in ("source_tokenizer.json", "target_tokenizer.json", "data.json"):
        (folder / name).write_text("{}")
    padding = {"_target_": "attnlab.batch.Padding", "encoder": "pre", "decoder": "post", "attention_masked": True}
    config = {"model": config_of(Variant("decoder", "step_then_attend")), "padding": {**padding, "recurrence": "skip"}}
    facts = ModelFacts(source_vocabulary_size=7, target_vocabulary_size=6, identity="a" * 16, step=1)
    model = bind(config["model"], Seq2Seq, "model")(**facts.sizes, padding=Padding())
    save_model(folder / "model", model.state_dict(), config, facts, folder)
    return folder / "model"


@SLOW
@given(data=st.data(), name=st.sampled_from(["config.json", "model.json"]))
def test_any_change_of_a_model_folder(model_folder: Path, data: st.DataObject, name: str) -> None:
    with TemporaryDirectory() as place:
        folder = Path(shutil.copytree(model_folder, Path(place) / "model"))
        content = data.draw(changed(json.loads((folder / name).read_text())))
        (folder / name).write_text(json.dumps(content))
        told_or_done(lambda: load_model(folder), str(folder), "model", "padding")


@LONG
@given(data=st.data())
def test_any_change_of_the_weights(model_folder: Path, data: st.DataObject) -> None:
    with TemporaryDirectory() as place:
        folder = Path(shutil.copytree(model_folder, Path(place) / "model"))
        weights = bytearray((folder / "weights.safetensors").read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, min(len(weights) - 1, 400)))
            weights[at : at + 1] = data.draw(st.binary(max_size=2))
        (folder / "weights.safetensors").write_bytes(bytes(weights))
        told_or_done(lambda: load_model(folder), str(folder))


ROW = st.dictionaries(st.sampled_from(["de", "en", "x"]), JSON, max_size=3)
CONTENT = st.one_of(
    st.binary(max_size=60), st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.lists(ROW, max_size=3).map(lambda rows: "\n".join(map(json.dumps, rows)).encode()),
    st.lists(ROW, max_size=3).map(lambda rows: json.dumps(rows).encode()),
)  # fmt: skip


@SLOW
@given(content=CONTENT, kind=st.sampled_from(["json", "jsonl", "csv", "tsv", "parquet", "jsonl.gz"]))
def test_any_file_of_pairs(content: bytes, kind: str) -> None:
    with TemporaryDirectory() as place:
        file = Path(place) / f"pairs.{kind}"
        file.write_bytes(content)
        told_or_done(lambda: load_splits(None, file, None, None, "de", "en"), "data.path: ")


@LONG
@given(content=st.binary(max_size=80))
def test_any_file_of_maps_and_any_prepared_folder(content: bytes) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("maps.npz", "data.json", "stats.json"):
            (folder / name).write_bytes(content)
        for read in (lambda: load_maps(folder / "maps.npz"), lambda: PreparedData(folder)):
            with pytest.raises(ExperimentError, match=str(folder)):
                read()
