"""The name of an experiment: of its run, sweep job, model, report title and explorer entry.

It follows from the config alone, so that a model folder has the name of the run that trained it: a
fault of the museum of mistakes, the score, every choice and setting that is not the default, the
data and the seed. Where a preset says the same in fewer words, its name stands for them.

In a sweep, what the sweep varies stands in front, each value before the name of its setting: a
narrow column shows the start of a name.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from attnlab.config.choices import (
    ConfFile,
    choice_of,
    conf_file,
    default_choices,
    differences,
    listed_choices,
    merged,
    place_of_group,
)
from attnlab.config.params import as_text, choice_name, leaves, short_params, value_at
from attnlab.config.renamed import with_new_names
from attnlab.errors import masked
from attnlab.project import CONF

# Characters of what a sweep varies, which always stands there, and of what is not the default, as
# far as it fits. The score, the data and the seed come on top.
LONGEST = 100
_SEPARATOR = " · "
# {place in the config: group}, in the order of the name: the score comes first, the data last.
_PLACES = {
    "model.fault": "fault",
    "model.attention": "model/attention",
    **{
        f"model.{name}": f"model/{name}"
        for name in (
            "projection", "normaliser", "scope", "history", "heads", "gate", "encoder",
            "bridge", "decoder", "readout", "output", "input_feeding", "initialisation",
        )
    },
    "model.encoder.first": "model/encoder",  # of a stack
    "model.encoder.then": "model/encoder",
    "model.encoder.features": "model/encoder",  # of an encoder with features
    "model.encoder.source": "model/encoder",
    "padding": "padding",
    "training.teacher_forcing": "training/teacher_forcing",
    "training.attention_schedule": "training/attention_schedule",
    "training.optimizer": "training/optimizer",
    "training.schedule": "training/schedule",
    "data.tokenizer": "data/tokenizer",
    "data.source_tokenizer": "data/tokenizer",
    "data.target_tokenizer": "data/tokenizer",
    "hardware": "hardware",
    "search": "search",
    "model": "model",
    "training": "training",
    "data": "data",
}  # fmt: skip
# What the name says of these stands at its beginning and at its end, or is the task.
_ALWAYS_NAMED = ("model.attention", "model", "training", "data")
# Groups whose choices say by themselves what they are choices of.
_PLAIN_CHOICES = ("model.encoder", "model.decoder", "padding", "hardware", "search")
_CHOSEN_ALONE = (
    *_PLAIN_CHOICES, *_ALWAYS_NAMED, "experiment", "task",
    "attention", "encoder", "decoder",  # by the names of MLflow's params
)  # fmt: skip
# Sections whose names say nothing that the setting itself does not.
_PLAIN_SECTIONS = ("data", "hardware", "model", "training")
# What the name of the data is made of.
_OF_THE_DATA = ("data.path", "data.dataset", "data.split", "data.language")


class Words(NamedTuple):
    """What a name says of a choice or a setting. place: in the config."""

    place: str
    text: str


def readable_name(
    config: Mapping[str, Any],
    varied: Mapping[str, str] = MappingProxyType({}),
    folders: tuple[Path, ...] = (CONF,),
) -> str:
    """The name of a config: `general · post_post · teacher forcing ratio 0.5 · dates · seed 1`.

    Sections may be missing or null.

    varied: {setting or group: its value as text} of what a sweep varies, in the order of its
        command. The name begins with all of them, also with those that are the default.
    folders: of configs, whose choices have their names; settings of other choices are listed.
    """
    # Keys that YAML made numbers of can only be sorted as text.
    with_text_keys = json.loads(json.dumps(with_new_names(config), default=str))
    return _name_of(json.dumps(with_text_keys, sort_keys=True), tuple(varied.items()), folders)


@functools.lru_cache
def _name_of(
    config_as_json: str, varied: tuple[tuple[str, str], ...], folders: tuple[Path, ...]
) -> str:
    """The name, for which many places ask."""
    config = json.loads(config_as_json)
    short = short_params(config)
    in_front = [choice_words(key, text) for key, text in varied]
    places = {_place_of(key) for key, _ in varied}

    words = list(in_front)
    # Never shortened: no faulty model may be mistaken for a right one.
    for word in _fault_words(config, folders):
        if word.place not in places:
            words.append(word.text)
    config = _without_fault(config, folders)
    if "attention" in short and "model.attention" not in places:
        words.append("no attention" if short["attention"] == "none" else short["attention"])
    others = []
    for each in _fewest_words(config, dict(varied).get("experiment"), folders):
        if each.place not in places and each.text not in in_front:
            others.append(each.text)
    words += _shortened(others, LONGEST - len(_SEPARATOR.join(in_front)))
    if "data" in short and short["data"] not in in_front:
        words.append(short["data"])
    if "seed" in short and "seed" not in places:
        words.append(f"seed {short['seed']}")
    return _SEPARATOR.join(word for word in words if word) or "run"


def _fault_words(config: Mapping[str, Any], folders: tuple[Path, ...]) -> list[Words]:
    """The fault of a model and its settings that are not those of its file; empty without one."""
    place = "model.fault"
    node = value_at(config, place)
    if node is None:
        return []
    name = choice_of("fault", node, folders=folders) or choice_name(node) or as_text(node)
    written = value_at(conf_file("fault", name, folders).values, place)
    settings = [
        Words(key, setting_words(key, value))
        for key, value in differences(written, node, config, f"{place}.")
    ]
    return [Words(place, setting_words(place, name)), *settings]


def _without_fault(config: Mapping[str, Any], folders: tuple[Path, ...]) -> dict[str, Any]:
    """The config of the right model: its class and its settings without the fault."""
    model = config.get("model")
    if not isinstance(model, Mapping) or model.get("fault") is None:
        return dict(config)
    right = {key: value for key, value in model.items() if key != "fault"}
    choice = default_choices(_task_of(config, folders), folders=folders)["model"]
    right["_target_"] = value_at(conf_file("model", choice, folders).values, "model._target_")
    return {**config, "model": right}


def choice_words(key: str, text: str) -> str:
    """What was typed for a group or a setting, in words: `dot`, `0.5 teacher forcing ratio`.

    A choice or a number stands before its setting, so that the names of two points differ as early
    as they can; other values would read badly there.

    key: `model/attention`, `training.teacher_forcing.ratio`.
    """
    place = _place_of(key)
    if place in _CHOSEN_ALONE and text != "none":
        return masked(text)
    if place in _OF_THE_DATA:
        return masked(text).rstrip("/").rpartition("/")[2]

    value = _typed_value(text)
    is_choice = place in _PLACES and value not in (None, "none")
    is_number = isinstance(value, int | float)
    if (is_choice or is_number) and place != "seed":
        return masked(f"{_value_words(value)} {setting_name(place)}")
    return setting_words(place, value)


def setting_name(key: str) -> str:
    """The words for a setting or a group: `teacher forcing ratio`, `attention`."""
    parts = _place_of(key).split(".")
    if parts[0] in _PLAIN_SECTIONS and parts[1:] and parts[1:] != ["seed"]:
        parts = parts[1:]
    return " ".join(parts).replace("_", " ")


def setting_words(path: str, value: Any) -> str:
    """A setting and its value in words: `optimizer lr 0.01`, or `no patience` for null.

    Passwords are masked.
    """
    setting = setting_name(path)
    if value is None or value == "none":
        return f"no {setting}"
    return masked(f"{setting} {_value_words(value)}")


def _value_words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(as_text, value))
    if isinstance(value, float) and len(as_text(value)) > 8:  # a sampler draws seventeen digits
        return f"{value:.6g}"
    return as_text(value)


def _place_of(key: str) -> str:
    """The place in the config of a setting or a group, as an override names it.

    It is `data.source_tokenizer` for `data/tokenizer@data.source_tokenizer`.
    """
    return place_of_group(key.rpartition("@")[2])


def _typed_value(text: str) -> Any:
    """The number or null that an override spells, or its text."""
    if text == "null":
        return None
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _shortened(texts: Sequence[str], longest: int) -> list[str]:
    """The texts, or as many of the first ones as fit, and a digest of the others.

    The digest keeps shortened names different from each other.

    longest: how many characters they may have together.
    """
    for count in range(len(texts), -1, -1):
        shown, hidden = list(texts[:count]), texts[count:]
        if hidden:
            digest = hashlib.sha256("\n".join(sorted(hidden)).encode()).hexdigest()[:4]
            shown.append(f"{len(hidden)} more ({digest})")
        if len(_SEPARATOR.join(shown)) <= longest:
            break
    return shown


def _fewest_words(
    config: Mapping[str, Any], named_preset: str | None, folders: tuple[Path, ...]
) -> list[Words]:
    """What differs from the defaults, or from a preset and its name, whichever is shorter.

    named_preset: what the name says already; then it is what differs from that one.
    """
    task = _task_of(config, folders)
    if named_preset is not None:
        is_known = named_preset in _presets_of(task, folders)
        return _different(config, task, named_preset if is_known else None, folders)

    fewest = _different(config, task, None, folders)
    cost = len(fewest)
    score = choice_of("model/attention", value_at(config, "model.attention"), folders=folders)
    for preset in _presets_of(task, folders):
        if cost < 2:
            break
        words = _different(config, task, preset, folders)
        with_preset = [Words("experiment", preset), *words]
        # The name says the score in any case, and beside the preset's own it needs a second look.
        preset_score = conf_file("experiment", preset, folders).overrides.get("model/attention")
        has_another_score = preset_score not in (None, score)
        preset_cost = len(with_preset) + has_another_score
        if preset_cost < cost:
            fewest, cost = with_preset, preset_cost
    return fewest


def _presets_of(task: str, folders: tuple[Path, ...]) -> list[str]:
    """The presets of a task; those that others build on come first."""
    files = {}
    for folder in folders:
        presets = folder / "experiment"
        for path in presets.rglob("*.yaml"):
            name = path.relative_to(presets).with_suffix("").as_posix()
            files[name] = conf_file("experiment", name, folders)

    of_task = [
        name for name, file in files.items() if file.overrides.get("task", "translation") == task
    ]
    return sorted(of_task, key=lambda name: (files[name].bases, name))


def _task_of(config: Mapping[str, Any], folders: tuple[Path, ...]) -> str:
    """The task; an older model folder does not name it, but its model belongs to one."""
    task = config.get("task")
    if isinstance(task, str):  # of an older run
        return task
    chosen = choice_of("task", task, folders=folders)
    if chosen is not None:
        return chosen
    model = choice_of("model", config.get("model"), folders=folders)
    for path in (CONF / "task").glob("*.yaml"):
        if conf_file("task", path.stem, folders).overrides.get("model") == model:
            return path.stem
    return "translation"


def _different(
    config: Mapping[str, Any], task: str, preset: str | None, folders: tuple[Path, ...]
) -> list[Words]:
    """What differs from the defaults, or from a preset: first choices, then settings."""
    if not CONF.is_dir():
        return []
    data = choice_of("data", config.get("data"), folders=folders)
    defaults = default_choices(task, preset, data, folders)
    # Files that set values of other sections, too
    files = [conf_file("data", data or "", folders)]
    if preset is not None:
        files.append(conf_file("experiment", preset, folders))

    choices: list[Words] = []
    settings: list[Words] = []
    implied: dict[str, str] = {}  # by other choices: a decoder may choose its readout
    above: dict[str, ConfFile] = {}  # {place: the file of its choice}
    for place, group in _PLACES.items():
        if not _has_choice(config, place):
            continue
        node = value_at(config, place)
        default = defaults.get(group)
        if place != group.replace("/", "."):
            # The tokenizer of one side is that of both sides, unless the file of the data has one.
            # A stack has one for each of its parts.
            default = defaults.get(f"{group}@{place}", "none")
        chosen: str | None = "none"
        if node is not None or default != "none":
            chosen = choice_of(group, node, default, folders)

        if chosen != implied.get(group, default) and place not in _ALWAYS_NAMED:
            name = chosen or choice_name(node) or as_text(node)
            choices.append(Words(place, _choice_words(place, name)))
        if chosen is None:
            usual = value_at(conf_file(place, default or "", folders).values, place)
            settings += _setting_words(_of_an_own_class(place, node, config, usual), place)
            continue
        file = conf_file(group, chosen, folders)
        if chosen != default:
            implied |= file.overrides
            defaults = {**defaults, **file.defaults}
        written = value_at(file.values, group.replace("/", "."))
        outer = [each for other, each in above.items() if place.startswith(f"{other}.")]
        of_choice = _changed_settings(place, written, config, [*outer, *files])
        settings += _setting_words(of_choice, place)
        above[place] = file

    # They are no groups with one choice: what counts is how they differ from the preset.
    written = value_at(files[-1].values, "trainer") or {}
    changed = differences(written, config.get("trainer") or {}, config, "trainer.")
    settings += _setting_words(changed, "trainer")
    settings += _callback_words(config, value_at(files[-1].values, "callbacks") or {}, folders)
    return [*choices, *settings]


def _callback_words(
    config: Mapping[str, Any], written: Any, folders: tuple[Path, ...]
) -> list[Words]:
    """The callbacks that a preset does not have, by their choices, and their changed settings.

    written: by the preset.
    """
    section = config.get("callbacks") or {}
    words = []
    for name in listed_choices("callbacks", section, written, folders):
        words.append(Words(f"callbacks.{name}", f"callbacks {name}"))
        file = conf_file("callbacks", name, folders)
        written = merged(written, value_at(file.values, "callbacks"))

    settings = []
    for key, value in differences(written, section, config, "callbacks."):
        if isinstance(value, Mapping):  # a callback without a file
            words.append(Words(key, key.replace(".", " ", 1)))
        else:
            settings.append((key, value))
    return [*words, *_setting_words(settings, "callbacks")]


def _changed_settings(
    place: str, written: Any, config: Mapping[str, Any], files: Iterable[ConfFile]
) -> list[tuple[str, Any]]:
    """(key, value) of the settings that differ from those of a choice.

    written: by the file of the choice.
    files: those that may set values of the section after it.
    """
    for file in files:
        of_file = value_at(file.values, place)
        if isinstance(of_file, Mapping):
            written = merged(written, of_file)
    changed = list(differences(written, value_at(config, place), config, f"{place}."))
    if place == "hardware" and written.get("precision") == "auto":
        # The preset leaves it to the machine, and the name does not depend on the machine.
        return [(key, value) for key, value in changed if key != "hardware.precision"]
    return changed


def _of_an_own_class(
    place: str, node: Any, config: Mapping[str, Any], usual: Any
) -> Iterable[tuple[str, Any]]:
    """The settings to name of a section whose class is none of ours.

    All of them, for their usual values are unknown; but every training has the settings of ours.

    usual: the section of the default choice.
    """
    if place != "training":
        return leaves(node, place)
    return differences(usual or {}, node, config, f"{place}.")


def _has_choice(config: Mapping[str, Any], place: str) -> bool:
    """Whether a config says something of a place, be it null for the choice `none`."""
    section, _, name = place.rpartition(".")
    above = value_at(config, section) if section else config
    if not isinstance(above, Mapping) or name not in above:
        return False

    # A section is null where a stage does not need it. Without a search, `search` is null, too.
    null_is_a_choice = section != "" or place == "search"
    node = above[name]
    return node != {} and (node is not None or null_is_a_choice)


def _choice_words(place: str, choice: str) -> str:
    """A choice in words: `post_post`, `bridge mean`, `no history`.

    The name of its group precedes it where that says more.
    """
    if place in _PLAIN_CHOICES and choice != "none":
        return choice
    return setting_words(place, choice)


def _setting_words(settings: Iterable[tuple[str, Any]], place: str) -> list[Words]:
    """The words for the settings of a section.

    Settings that belong to a nested group, or name the data, are left out.
    """
    inner = tuple(f"{other}." for other in _PLACES if other.startswith(f"{place}."))
    of_hydra = ("._target_", "._partial_")
    words = []
    for key, value in settings:
        if f"{key}.".startswith(inner) or key in _OF_THE_DATA or key.endswith(of_hydra):
            continue
        # `auto` is resolved for this machine, and differs from the usual only where it is bf16.
        if key == "hardware.precision" and str(value) in ("32", "auto"):
            continue
        if isinstance(value, Mapping):
            value = choice_name(value)
        words.append(Words(key, setting_words(key, value)))
    return words
