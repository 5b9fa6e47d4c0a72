"""Every YAML of conf/data composes and binds; the tokeniser can be chosen for each."""

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from attnlab.config.binding import bind
from attnlab.data.corpus import Corpus, SentenceCorpus
from attnlab.data.tokenizer import TokenizerTrainer

CONF = Path(__file__).resolve().parents[2] / "conf"
CORPORA = sorted(path.stem for path in (CONF / "data").glob("*.yaml"))
TOKENIZERS = sorted(path.stem for path in (CONF / "data" / "tokenizer").glob("*.yaml"))


def composed(*overrides: str) -> dict[str, Any]:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", list(overrides))
    return OmegaConf.to_container(config.data, resolve=True)


def kind_of(node: dict[str, Any]) -> type:
    """The base class of the corpus that a node names, by the task that it goes with."""
    module, _, name = node["_target_"].rpartition(".")
    corpus = getattr(import_module(module), name)
    return SentenceCorpus if issubclass(corpus, SentenceCorpus) else Corpus


@pytest.mark.parametrize("name", CORPORA)
def test_preset_sets_every_parameter(name):
    node = composed(f"data={name}")
    corpus = bind(node, kind_of(node), "data")
    parts = (
        (node, corpus),
        (node["tokenizer"], corpus.tokenizer),
        (node.get("cleaning"), corpus.cleaning),
    )
    for part, built in parts:
        if part is not None:
            sides = {"source_tokenizer", "target_tokenizer"}  # null where one tokenizer is for both
            assert set(part) - {"_target_"} == set(inspect.signature(type(built)).parameters) - (
                sides - set(part)
            )
    assert isinstance(corpus.tokenizer, TokenizerTrainer)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_preset_binds_with_any_tokenizer(tokenizer):
    expected = OmegaConf.load(CONF / "data" / "tokenizer" / f"{tokenizer}.yaml")._target_
    # Each chooses another tokeniser, or sets values of it
    for name in ("dates", "rt_polarity", "wmt14"):
        node = composed(f"data={name}", f"data/tokenizer={tokenizer}")
        assert node["tokenizer"]["_target_"] == expected
        if tokenizer == "of_model":
            node["tokenizer"]["folder"] = "a folder"
        bind(node, kind_of(node), "data")
