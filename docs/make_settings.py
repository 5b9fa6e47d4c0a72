"""Makes the reference of all settings, a page and a JSON Schema.

They are derived from the files of conf/ and the constructors.

    python docs/make_settings.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml  # type: ignore[import-untyped]
from omegaconf import OmegaConf
from pydantic import PydanticUserError, TypeAdapter

from attnlab.config.annotation_text import describe
from attnlab.config.choices import place_of_group
from attnlab.config.params import as_text, leaves, value_at
from attnlab.config.place import Place, component, places_of, setting_annotations
from attnlab.config.signature import constructor_hints, settings_of
from attnlab.config.target import PARTIAL, TARGET, class_named, known_targets
from attnlab.experiment.composition import plain, sections_of
from attnlab.experiment.config_sources import groups
from attnlab.experiment.hydra_config import choices_of, compose_config
from attnlab.files import atomic_file, write_json
from attnlab.project import CONF
from attnlab.tasks.saved import SHIPPED
from attnlab.tasks.task import Experiment
from attnlab.training.torch_optim import MEANINGS

_ENTRY = re.compile(r"( *)(\w+(?:, \w+)*): (.+)")  # of a docstring
PAGE, SCHEMA = "settings.md", "settings.schema.json"
INTRODUCTION = """# Settings

`make settings` writes this page from the files of `conf/` and the constructors of the classes that
they name.

On the command line, `group=choice` selects a choice and `key=value` changes a setting. A setting
with a `+` is not in the file of its choice: write the `+` to change it.
[choices.md](choices.md) explains the choices,
[mechanisms.md](mechanisms.md) gives formulas and sources.
[settings.schema.json](settings.schema.json) is the JSON Schema of a composed config, for editors:
`--cfg job --resolve` prints such a config, and `dvc repro` writes it to `build/resolved.yaml`.
"""
TABLE = ("| setting | it must be | default | meaning |", "| --- | --- | --- | --- |")
GROUPS = groups()
# Groups whose choices add to a section, any number of them
ADDITIONS = ("callbacks", "loggers", "metrics", "pictures", "trainer")
# Groups whose choices have no settings of their own
PRESETS = ("debug", "experiment", "task", *ADDITIONS)


def write(folder: Path = CONF.parent / "docs") -> None:
    """Write the page and the schema."""
    with atomic_file(folder / PAGE) as temporary:
        temporary.write_text(page(), encoding="utf-8", newline="\n")
    write_json(folder / SCHEMA, schema())


def schema() -> dict[str, Any]:
    """The JSON Schema of a composed config, with one alternative for each task."""
    more = {"hydra": {"type": "object"}}
    return json_schema(
        {
            f"task={task.name}": {**sections_of(task), "task": {"const": task.node}, **more}
            for task in SHIPPED
        },
        more,
    )


def page() -> str:
    """The page, in Markdown."""
    config = compose_config()
    default = choices_of(config)
    top = {name: value for name, value in plain(config).items() if _is_at_top(name)}
    annotations, known = sections_of(SHIPPED[0]), meanings(Experiment)
    parts = [INTRODUCTION, "## Top level", "", *TABLE]
    for name, value in top.items():
        parts += _setting(name, annotations[name], value, known.get(name, ""))
    parts.append("")
    for group, choices in GROUPS.items():
        parts += _group(group, choices, default.get(group, ""))
    return "\n".join(parts)


def _is_at_top(name: str) -> bool:
    """Whether a section, or a setting, has no table of its own."""
    return name not in GROUPS or name in ADDITIONS


def _group(group: str, choices: list[str], default: str) -> Iterator[str]:
    """The table of a group's choices, then a table of settings for each class that they name."""
    place = place_of_group(group)
    default = default or next((name for name in ("none", "default") if name in choices), "")
    own = {choice: f"\n{TARGET}:" in _text(group, choice) for choice in choices}
    choices = sorted(choices, key=lambda choice: (choice != default, not own[choice]))
    nodes = {} if group in PRESETS else {choice: _node(group, choice) for choice in choices}
    tables: dict[str, str] = {}  # class -> the choice whose values its table has
    for choice, node in nodes.items():
        if node is not None:
            tables.setdefault(node[TARGET], choice)

    yield from (f"## `{group}`", "", "| choice | what it is |", "| --- | --- |")
    for choice in choices:
        known = {}
        if node := nodes.get(choice):
            known = dict(leaves(nodes[tables[node[TARGET]]], place))
        what = _what(group, choice, known)
        if node and not what:
            what = summary(class_named(node[TARGET], object))
        yield f"| `{choice}`{' (default)' if choice == default else ''} | {_cell(what)} |"
    yield ""
    for target, choice in tables.items():
        found = class_named(target, object)
        if rows := list(_settings(found, nodes[choice], place)):
            yield from (f"### `{group}={choice}`", "", summary(found), "", *TABLE, *rows, "")


def _settings(target: type, values: Mapping[str, Any], place: str) -> Iterator[str]:
    """The rows of a class's settings, with these values as their defaults."""
    known, settings = meanings(target), settings_of(target)
    for name, annotation in setting_annotations(target, _place_of(place, target)).items():
        is_given, meaning = name in values, known.get(name, "")
        value = values[name] if is_given else settings[name].default
        yield from _setting(f"{place}.{name}", annotation, value, meaning, "" if is_given else "+")


def _place_of(path: str, target: type) -> Place | None:
    """The place of `training.optimizer`, which says more of its settings than a class of torch."""
    section, _, name = path.partition(".")
    annotation = sections_of(SHIPPED[0]).get(section)
    if not _is_of_torch(target) or not name:
        return None
    hints = constructor_hints(component(annotation) or object)
    places = places_of(hints.get(name, Any))
    return next((place for place in places if issubclass(target, place.kind)), None)


def _is_of_torch(target: type) -> bool:
    return target.__module__.partition(".")[0] == "torch"


def _setting(path: str, annotation: Any, value: Any, meaning: str, plus: str = "") -> Iterator[str]:
    """The row of one setting, or the rows of an object's own settings.

    A group has its own tables, so it has no row.
    """
    if not _is_at_top(path.replace(".", "/")):
        return
    if isinstance(value, Mapping) and TARGET in value:
        yield from _settings(class_named(value[TARGET], object), value, path)
        return
    default = _default_in_words(path, as_text(value))
    cells = [_cell(each) for each in (describe(annotation), default, meaning)]
    yield f"| `{plus}{path}` | {' | '.join(cells)} |"


def _default_in_words(path: str, text: str) -> str:
    """A value as it is, or the place that a reference takes it from.

    `${.dropout}` counts from the setting's own place; `${oc.select:model.encoder.cell,gru}` has a
    value where there is no such place.
    """
    if not text.startswith("${"):
        return f"`{text}`"
    reference = text[2:-1]
    if reference.startswith("oc.select:"):
        place, _, otherwise = reference.removeprefix("oc.select:").partition(",")
        return f"that of `{place}`; `{otherwise}` where there is none"
    if reference.startswith("."):
        reference = path.rpartition(".")[0] + reference
    return f"that of `{reference}`"


def _node(group: str, choice: str) -> Any:
    """The settings that a choice brings, references unresolved; None for null."""
    text = _text(group, choice)
    if "defaults:" not in text and "@package" not in text:
        return OmegaConf.to_container(OmegaConf.create(text), resolve=False)
    alone = "override /" not in text  # else it changes other groups, which must be there
    config = (
        compose_config(name=f"{group}/{choice}") if alone else compose_config([f"{group}={choice}"])
    )
    return value_at(OmegaConf.to_container(config, resolve=False), place_of_group(group))


def _what(group: str, choice: str, known: Mapping[str, Any]) -> str:
    """The description of a choice.

    It consists of the comment of its file, the other choices that it makes, and the values that it
    sets in addition to the known ones.
    """
    text = _text(group, choice)
    head = [
        line.removeprefix("#")
        for line in text.splitlines()
        if line.startswith("#") and "@package" not in line
    ]
    comment = " ".join(
        f"`{line.strip()}`" if line.startswith("   ") else line.strip() for line in head
    )
    values = yaml.safe_load(text) or {}
    place = "" if "@package _global_" in text else group.replace("/", ".")
    parents, chosen = [], []
    for default in values.pop("defaults", []):
        if isinstance(default, str):
            parents += [f"`{default}`"] if default != "_self_" else []
        else:
            ((key, name),) = default.items()
            part = key.removeprefix("override ")
            if place:  # for another place, which stands inside that of the file
                part = part.replace("@", f"@{place}.")
            chosen.append(f"{part[1:] if part.startswith('/') else f'{group}/{part}'}={name}")
    missing = object()
    # What a fault is put into; it is no setting.
    known = {"model._target_": value_at(values, "model._target_"), **known}
    chosen += [
        f"{key}={as_text(value)}"
        for key, value in leaves(values, place)
        if known.get(key, missing) != value
    ]
    chosen = [f"`{each}`" for each in chosen if not each.startswith("hydra")]
    comment += "." if comment and comment[-1] not in ".`:" and (parents or chosen) else ""
    sentences = [
        comment,
        parents and f"As {', '.join(parents)}.",
        chosen and f"Sets {', '.join(chosen)}.",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _text(group: str, choice: str) -> str:
    return (CONF / group / f"{choice}.yaml").read_text(encoding="utf-8")


def _cell(text: str) -> str:
    """A text within a table."""
    return " ".join(text.split()).replace("|", "\\|")


def summary(target: type) -> str:
    """The first paragraph of a class's docstring, in one line."""
    if _is_of_torch(target):
        module = target.__module__.removesuffix(f".{target.__name__.lower()}")
        return f"`{module}.{target.__name__}`, whose documentation says more."
    return " ".join(inspect.cleandoc(target.__doc__ or "").partition("\n\n")[0].split())


def meanings(target: type) -> dict[str, str]:
    """{setting: its meaning}, from the docstrings of a class and of its bases.

    A meaning is a line `name: meaning`, with its continuation lines.
    """
    if _is_of_torch(target):
        return {name: MEANINGS.get(name, "as torch documents it") for name in settings_of(target)}
    found: dict[str, str] = {}
    for base in reversed(target.__mro__):
        names: list[str] = []  # of the entry that a line may go on with
        indent = 0
        for line in inspect.cleandoc(base.__doc__ or "").splitlines():
            entry = _ENTRY.fullmatch(line)
            if entry and settings_of(target).keys() >= {*entry[2].split(", ")}:
                names, indent = entry[2].split(", "), len(entry[1])
                found.update(dict.fromkeys(names, entry[3]))
            elif names and line.startswith(" " * (indent + 1)):
                found.update({name: f"{found[name]} {line.strip()}" for name in names})
            else:
                names = []
    values = {"None": "null", "True": "true", "False": "false"}  # as YAML has them
    return {
        name: re.sub(r"\b(None|True|False)\b", lambda word: values[word[0]], text)
        for name, text in found.items()
    }


def json_schema(
    alternatives: Mapping[str, Mapping[str, Any]], optional: Collection[str] = ()
) -> dict[str, Any]:
    """The JSON Schema of a config that has one of several sets of sections.

    Args:
        alternatives: {title: {section: its annotation, or its schema as a dict}}.
        optional: sections that may be missing.
    """
    definitions: dict[str, Any] = {}
    options = [
        _object(
            title, {name: _schema(each, definitions) for name, each in sections.items()}, optional
        )
        for title, sections in alternatives.items()
    ]
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "oneOf": options, "$defs": dict(sorted(definitions.items()))}


def _schema(annotation: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of one setting.

    The schemas of the classes that it may name are added to the definitions.
    """
    if isinstance(annotation, dict):
        return annotation
    places = places_of(annotation)
    if not places:
        return _plain_schema(annotation)
    alternatives = [_reference(place, definitions) for place in places]
    if type(None) in get_args(annotation):
        alternatives.append({"type": "null"})
    return alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}


def _plain_schema(annotation: Any) -> dict[str, Any]:
    if annotation is Any:
        return {}
    try:
        return TypeAdapter(annotation).json_schema()
    except PydanticUserError:  # a type of torch's, or a function
        return {}


def _reference(place: Place, definitions: dict[str, Any]) -> dict[str, Any]:
    """The reference to a kind's schema, which is added to the definitions."""
    kind = place.kind
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}  # it may hold settings of its own kind
        known = known_targets(kind)
        own = {TARGET: {"type": "string", "not": {"enum": known}}}
        classes = [_class(target, definitions, place) for target in known]
        definitions[kind.__name__]["oneOf"] = [
            *classes,
            {
                "title": "a class of your own",
                "type": "object",
                "properties": own,
                "required": [TARGET],
            },
        ]
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _class(target: str, definitions: dict[str, Any], place: Place) -> dict[str, Any]:
    found = class_named(target, object)
    known, settings = meanings(found), settings_of(found)
    properties: dict[str, Any] = {TARGET: {"const": target}}
    if place.takes_partial:
        properties[PARTIAL] = {"const": True}
    for name, annotation in setting_annotations(found, place).items():
        described = {"description": known[name]} if name in known else {}
        properties[name] = _schema(annotation, definitions) | described
    optional = [
        name for name, parameter in settings.items() if parameter.default is not parameter.empty
    ]
    return _object(target, properties, optional) | {"description": summary(found)}


def _object(
    title: str, properties: dict[str, Any], optional: Collection[str] = ()
) -> dict[str, Any]:
    return {
        "title": title,
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


if __name__ == "__main__":
    write()
