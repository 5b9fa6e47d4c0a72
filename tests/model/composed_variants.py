"""One small model for each YAML file of the model's groups.

They are found by looking into the folders, so that a new file is covered.

The files are put together here, for Hydra takes a quarter of a second for each; a test holds this
to what Hydra makes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

import torch
import yaml
from omegaconf import OmegaConf

from attnlab.batch import Padding
from attnlab.config.binding import bind
from attnlab.config.part import Part
from attnlab.config.signature import constructor_hints
from attnlab.config.target import class_named
from attnlab.model.seq2seq import Seq2Seq

CONF = Path(__file__).resolve().parents[2] / "conf"
OF_THE_ATTENTION = [
    "attention",
    "projection",
    "normaliser",
    "scope",
    "history",
    "heads",
    "gate",
]
OF_THE_MODEL = ["encoder", "bridge", "decoder", "readout", "output", "input_feeding"]

# What else must be chosen so that a choice goes together with the rest.
COMPANIONS: dict[tuple[str, str], dict[str, str]] = {
    ("input_feeding", "attentional_hidden"): {"readout": "attentional"},
    ("decoder", "no_attention"): {"attention": "none"},
    ("output", "pointer_network"): {"readout": "plain"},
    ("readout", "state"): {"decoder": "no_attention", "attention": "none"},
}
VOCABULARY = {"source_vocabulary_size": 11, "target_vocabulary_size": 9}
# Of a model that copies source tokens into the target.
JOINT_VOCABULARY = dict.fromkeys(VOCABULARY, 11)
# With its usual scale, the cosine of a few units saturates sparsemax, which then has no gradient.
SMALL = {
    "embedding_size": 6,
    "size": 5,
    "heads": 2,
    "max_length": 12,
    "width": 2,
    "initial_scale": 1.0,
    "k": 2,
    "reach": 1,
    "filters": 3,
    "initial_bias": 0.5,
    "chunk_size": 2,
    "self_attention_heads": 2,
    "feed_forward_size": 5,
    "blocks": 2,
}
ONLY_COPIES = ("pointer_network",)
COPIES = ("pointer_generator", *ONLY_COPIES)
FOLLOWS_ALIGNMENT = ("hard_monotonic_attention", "first_order_hard_attention")
MARGINALISES = ("hard_attention", *FOLLOWS_ALIGNMENT)
ENCODER_SIZE, QUERY_SIZE, VALUE_SIZE = 4, 8, 8


class Variant(NamedTuple):
    group: str
    name: str
    decoder: str | None = None  # None: the one that is composed anyway

    def __str__(self) -> str:
        return f"{self.group}={self.name}" + (f"-{self.decoder}" if self.decoder else "")


def files_of(group: str) -> list[str]:
    folder = CONF / "model" / group
    return sorted(str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.yaml"))


def usual_first(group: str) -> list[str]:
    """The choices of a group; the one that is composed anyway stands first."""
    return sorted(files_of(group), key=lambda name: name != names_of({})[group])


@functools.cache
def _file(path: str) -> Any:
    """The content of a file, over that of a file of its own group that it builds on."""
    content = yaml.safe_load((CONF / "model" / f"{path}.yaml").read_text(encoding="utf-8"))
    group = path.rpartition("/")[0]
    for entry in content.pop("defaults", []):
        if entry == "_self_":
            continue
        if isinstance(entry, str):
            content = _file(f"{group}/{entry}") | content
            continue
        for name, choice in entry.items():
            # `/model/encoder@first` stands inside this section, any other group beside it.
            inner = name.partition(f"/model/{group}@")[2]
            if inner:
                content[inner] = _file(f"{group}/{choice}") | content.get(inner, {})
            else:
                content.setdefault("defaults", []).append({name: choice})
    return content


def names_of(choices: Mapping[str, str]) -> dict[str, str]:
    """{group: name} of conf/model/seq2seq.yaml with some of its choices replaced.

    As `model/<group>=<name>` does.
    """
    nodes = _file("seq2seq")["defaults"]
    # A file may choose for other groups too, but what is asked for goes before.
    nodes = nodes + [
        node for choice in choices.items() for node in _file("/".join(choice)).get("defaults", [])
    ]
    names = {
        group: name for node in nodes if isinstance(node, dict) for group, name in node.items()
    }
    return {group.removeprefix("override /model/"): name for group, name in names.items()} | choices


def composed(choices: Mapping[str, str]) -> dict[str, Any]:
    """The model's section with these choices."""
    model = {key: value for key, value in _file("seq2seq").items() if key != "defaults"}
    for group, name in names_of(choices).items():
        content = _file(f"{group}/{name}")
        model |= {group: content} if "_target_" in content else content.get("model", content)
    return OmegaConf.to_container(OmegaConf.create({"model": model}), resolve=True)["model"]  # type: ignore[index, call-overload, return-value]


def choices_of(variant: Variant) -> dict[str, str]:
    decoder = {} if variant.decoder is None else {"decoder": variant.decoder}
    return (
        decoder | {variant.group: variant.name} | COMPANIONS.get((variant.group, variant.name), {})
    )


@functools.cache
def _section(group: str, name: str) -> dict[str, Any] | None:
    return composed(choices_of(Variant(group, name)))[group]


def part_of(
    group: str, name: str, sizes: Mapping[str, Any] = SMALL, **values: Any
) -> Part[Any] | None:
    """A choice as a Part: its YAML with those of the sizes that it has, and the values.

    None where it is null.
    """
    node = _section(group, name)
    if node is None:
        return None
    return _as_part(_with_sizes(node, sizes) | values, f"model.{group}")


def _with_sizes(node: Mapping[str, Any], sizes: Mapping[str, Any]) -> dict[str, Any]:
    """A node with those of the sizes that it has, and likewise the nodes inside it."""
    resized = {}
    for key, value in node.items():
        resized[key] = _with_sizes(value, sizes) if isinstance(value, dict) else value
    return resized | {key: size for key, size in sizes.items() if key in node}


def _as_part(node: Mapping[str, Any], path: str) -> Part[Any]:
    """A node as a Part, and those inside it too."""
    values = {}
    for key, value in node.items():
        values[key] = _as_part(value, f"{path}.{key}") if isinstance(value, dict) else value
    return Part(class_named(values.pop("_target_"), object), path, **values)


def attends(decoder: str) -> bool:
    return names_of(choices_of(Variant("decoder", decoder)))["attention"] != "none"


def contexts_of(decoder: str) -> list[str]:
    """Where the decoder's context can go; the place that its YAML names stands first."""
    part = part_of("decoder", decoder)
    assert part is not None
    return sorted(
        get_args(constructor_hints(part.target)["context"]),
        key=lambda name: name != part.values["context"],
    )


def config_of(variant: Variant) -> dict[str, Any]:
    """The model's section with the variant's YAML in it, and small sizes."""
    model = composed(choices_of(variant))
    for group, node in model.items():
        if isinstance(node, dict):
            units = ENCODER_SIZE if group == "encoder" else QUERY_SIZE
            model[group] = _with_sizes(node, SMALL | {"hidden_size": units})
    return model


def sizes_of(variant: Variant) -> dict[str, int]:
    """The vocabularies; of a model that copies both are one."""
    return JOINT_VOCABULARY if variant.name in COPIES else VOCABULARY


def build(
    variant: Variant,
    padding: Padding = Padding(),  # noqa: B008 (frozen)
    dtype: torch.dtype = torch.float64,
    **replaced: Any,
) -> Seq2Seq:
    torch.manual_seed(0)
    part = bind(config_of(variant) | replaced, Seq2Seq, "model")
    return part(**sizes_of(variant), padding=padding).to(dtype).eval()


def _unlike(variants: list[Variant]) -> list[Variant]:
    """Without those whose model an earlier one has already: files that are chosen anyway."""
    configs: list[dict[str, Any]] = []
    kept = []
    for variant in variants:
        config = config_of(variant)
        if config not in configs:
            configs.append(config)
            kept.append(variant)
    return kept


ATTENDING = _unlike(
    [
        Variant(group, name, decoder)
        for group in OF_THE_ATTENTION
        for name in files_of(group)
        if (group, name) != ("attention", "none")
        for decoder in ("attend_then_step", "step_then_attend")
    ]
)
VARIANTS = _unlike(
    [*ATTENDING, *(Variant(group, name) for group in OF_THE_MODEL for name in files_of(group))]
)
