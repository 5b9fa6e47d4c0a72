"""docs/settings.md and docs/settings.schema.json.

They are as `make settings` writes them, complete, and agree with the configs.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from make_settings import meanings, write

from attnlab.experiment.composition import plain
from attnlab.experiment.config_sources import groups
from attnlab.experiment.hydra_config import compose_config

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "settings.md").read_text(encoding="utf-8")
SCHEMA = json.loads((DOCS / "settings.schema.json").read_text(encoding="utf-8"))
ROWS = [
    re.split(r"(?<!\\) \| ", line.strip("| "))
    for line in PAGE.splitlines()
    if line.startswith("| `")
]
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
}
CHECKED = {
    "$ref", "type", "const", "enum", "oneOf", "anyOf", "not", "properties", "required",
    "additionalProperties", "items", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "minLength", "minItems", "maxItems", "prefixItems",
}  # fmt: skip
NOTES = {"title", "description", "default", "$schema", "$defs"}


def is_type(value: Any, name: str) -> bool:
    if name == "null" or isinstance(value, bool):
        return value is None if name == "null" else name == "boolean"
    return isinstance(value, TYPES[name])


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value is valid, for the keywords of JSON Schema that our schema uses."""
    assert schema.keys() <= CHECKED | NOTES, schema
    if "$ref" in schema:
        return fits(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    size = (
        value
        if isinstance(value, int | float)
        else len(value)
        if isinstance(value, str | list)
        else 0
    )
    fixed = [schema["const"]] if "const" in schema else schema.get("enum", [value])
    low, high = (
        schema.get("minLength", schema.get("minItems", 0)),
        schema.get("maxItems", float("inf")),
    )
    if isinstance(value, dict):
        known, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        others = {True: {}, False: {"not": {}}}.get(more, more) if isinstance(more, bool) else more
        if not all(fits(each, known.get(name, others)) for name, each in value.items()):
            return False
    return (
        ("type" not in schema or is_type(value, schema["type"]))
        and any(each == value and type(each) is type(value) for each in fixed)
        and ("oneOf" not in schema or sum(fits(value, each) for each in schema["oneOf"]) == 1)
        and ("anyOf" not in schema or any(fits(value, each) for each in schema["anyOf"]))
        and ("not" not in schema or not fits(value, schema["not"]))
        and (not isinstance(value, str | list) or low <= size <= high)
        and set(schema.get("required", ())) <= (value.keys() if isinstance(value, dict) else set())
        and (
            not isinstance(value, list)
            or all(map(fits, value, schema.get("prefixItems", [schema.get("items", {})] * size)))
        )
        and schema.get("minimum", size) <= size <= schema.get("maximum", size)
        and schema.get("exclusiveMinimum", size - 1)
        < size
        < schema.get("exclusiveMaximum", size + 1)
    )


def test_settings_files_are_what_the_command_writes(tmp_path: Path) -> None:
    write(tmp_path)
    for file in sorted(tmp_path.iterdir()):
        expected = (DOCS / file.name).read_text(encoding="utf-8")
        assert file.read_text(encoding="utf-8") == expected, (
            f"docs/{file.name} is stale; run `make settings`"
        )


def test_settings_page_names_every_choice_and_says_what_it_is() -> None:
    sections = re.split(r"^## `(.+)`$", PAGE, flags=re.MULTILINE)[1:]
    named = {
        group: dict(re.findall(r"^\| `([\w/]+)`(?: \(default\))? \| (.*) \|$", text, re.MULTILINE))
        for group, text in zip(sections[::2], sections[1::2], strict=True)
    }
    assert {group: sorted(choices) for group, choices in named.items()} == groups()
    assert not [
        (group, choice)
        for group, choices in named.items()
        for choice, what in choices.items()
        if not what
    ]


def test_settings_page_gives_type_default_and_meaning_of_every_setting() -> None:
    settings = [row for row in ROWS if "." in row[0] or row[0] == "`seed`"]
    assert len(settings) > 250
    assert not [
        row[0] for row in settings if len(row) != 4 or not all(cell.strip() for cell in row)
    ]


def test_settings_page_has_no_html_outside_of_code() -> None:
    assert not re.findall(r"<[^>]*>", re.sub(r"`[^`]*`", "", PAGE))


def test_settings_page_shows_range_reference_and_setting_outside_of_the_file() -> None:
    shown = {row[0]: row[1:] for row in ROWS}
    assert shown["`training.teacher_forcing.ratio`"][0] == "a number between 0 and 1"
    assert shown["`model.encoder.layer_dropout`"][1] == "that of `model.encoder.dropout`"
    assert shown["`+training.validation_search.min_length`"][1] == "`0`"
    assert "`data.name=de-en`" in shown["`wmt14`"][0]


class Base:
    """size: of the base.
    width: in columns,
        with a second line."""


class Derived(Base):
    """Something.

    Args:
        size, depth: the derived
            meaning; None for none.

    width is not explained in prose: this line is not an entry.
    """

    def __init__(self, size: int, depth: int, width: int) -> None: ...


def test_meanings_come_from_the_class_and_then_from_its_bases() -> None:
    derived = "the derived meaning; null for none."
    assert meanings(Derived) == {
        "size": derived,
        "depth": derived,
        "width": "in columns, with a second line.",
    }


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        (
            "data=hub",
            "model=seq2seq",
            "model/attention=none",
            "search=sample",
            "hardware=ddp_cpu",
            "tracking=none",
        ),
        (
            "model/history=coverage",
            "model/heads=multi",
            "model/scope=local_p",
            "sweep=optuna",
            "launcher=slurm",
        ),
        ("task=classification", "experiment=lesson/classifier"),
        ("model.attention._target_=my_scores.MyScore", "+model.attention.anything=[1,2]"),
    ],
    ids=",".join,
)
def test_schema_accepts_a_valid_config(overrides: tuple[str, ...]) -> None:
    assert fits(plain(compose_config(overrides)), SCHEMA)


@pytest.mark.parametrize(
    "override",
    [
        "training.teacher_forcing.ratio=1.5",
        "model.encoder.layers=0",
        "model.encoder.layers=true",
        "model.encoder.merge=product",
        "model.attention._target_=attnlab.model.attention.dot.DotScore",
        "+model.encoder.unknown=1",
        "~data.num_pairs",
        "task=classification",
        "search=none",
        "padding.encoder=null",
        "model.attention._target_=null",
        "data.formats=[]",
    ],
)
def test_schema_refuses_an_invalid_config(override: str) -> None:
    config = plain(compose_config([override] if override != "task=classification" else []))
    if override == "task=classification":
        config["task"] = "classification"
    assert not fits(config, SCHEMA)
