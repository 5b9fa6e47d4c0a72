"""An experiment: the sections of the config, what each must be, and which of them each stage depends on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from omegaconf import DictConfig, OmegaConf

if TYPE_CHECKING:
    from attnlab.batch import Padding
    from attnlab.composition.part import Part
    from attnlab.composition.paths import Paths
    from attnlab.data.corpus import Corpus
    from attnlab.model.seq2seq import Seq2Seq
    from attnlab.search.search import Search
    from attnlab.tracking.settings import Tracking
    from attnlab.training.hardware import Hardware
    from attnlab.training.settings import Training

# Which sections decide a stage's output, and the code that makes it. dvc.yaml says the same to DVC, and a test
# holds the two together.
PREPARE_SECTIONS = ("data",)
PREPARE_SOURCES = ("batch.py", "composition", "data")
TRAIN_SECTIONS = ("seed", "padding", "model", "training", "hardware")
TRAIN_SOURCES = (
    "batch.py",
    "composition",
    "data",
    "model",
    "search",
    "training",
    "evaluation/text_metrics.py",
)
EVALUATE_SECTIONS = ("search", "hardware")


@dataclass(frozen=True)
class Experiment:
    """A checked config. `config` is plain and resolved, but for environment variables, which stay as written."""

    config: dict[str, Any]
    seed: int
    data: Corpus
    padding: Padding
    model: Part[Seq2Seq]
    search: Search
    training: Training
    tracking: Tracking
    hardware: Hardware
    paths: Paths
    chain: bool
    rerun: bool

    def sections(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: self.config[name] for name in names}


def check(config: DictConfig) -> Experiment:
    """Bind every section to its constructor and try the model for size; raises ExperimentError with all problems."""
    import torch
    from pydantic import Field

    from attnlab.batch import Padding
    from attnlab.composition.binding import bind_sections
    from attnlab.composition.part import Part
    from attnlab.composition.paths import Paths
    from attnlab.data.corpus import Corpus
    from attnlab.model.seq2seq import Seq2Seq
    from attnlab.search.search import Search
    from attnlab.tracking.settings import Tracking
    from attnlab.training.hardware import Hardware
    from attnlab.training.settings import Training

    sections = {
        "seed": Annotated[int, Field(ge=0, lt=2**32)],
        "data": Corpus,
        "padding": Padding,
        "model": Part[Seq2Seq],
        "search": Search,
        "training": Training,
        "tracking": Tracking,
        "hardware": Hardware,
        "paths": Paths,
        "chain": bool,
        "rerun": bool,
    }
    bound = bind_sections(plain(config), sections)
    # Sizes that do not fit show when the model is built; on the meta device that costs no memory.
    with torch.device("meta"):
        bound["model"](source_vocabulary_size=8, target_vocabulary_size=8, padding=bound["padding"])
    return Experiment(config=plain(config, keep_environment=True), **bound)


def plain(config: DictConfig, keep_environment: bool = False) -> dict[str, Any]:
    """The resolved config without Hydra's node, as plain containers.

    keep_environment: leave `${oc.env:NAME}` as it stands, for whatever is written down or logged: an environment
        may hold secrets.
    """
    config = config.copy()
    OmegaConf.set_struct(config, False)
    config.pop("hydra", None)
    if not keep_environment:
        return OmegaConf.to_container(config, resolve=True)  # type: ignore[return-value]
    with _environment_as_written():
        return OmegaConf.to_container(config.copy(), resolve=True)  # type: ignore[return-value]


class _environment_as_written:  # noqa: N801 (a context manager)
    def __enter__(self) -> None:
        OmegaConf.register_new_resolver("oc.env", _as_written, replace=True)

    def __exit__(self, *error: object) -> None:
        from omegaconf.resolvers import oc

        OmegaConf.register_new_resolver("oc.env", oc.env, replace=True)


def _as_written(name: str, *default: Any) -> str:
    return "${oc.env:" + ",".join([name, *map(str, default)]) + "}"


def output_folder() -> Path:
    """Hydra's output folder of this job."""
    from hydra.core.hydra_config import HydraConfig

    return Path(HydraConfig.get().runtime.output_dir)


def here(path: str) -> Path:
    """A path of the config, from the folder that the command was given in."""
    return Path(os.path.expanduser(path)).resolve()
