"""What a dataset's card says of the form of its files."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import datasets

from attnlab.data.raw import is_text_encoding
from attnlab.data.raw.rows import Format
from attnlab.data.raw.sources import kind_of
from attnlab.data.raw.tables import SEPARATORS
from attnlab.errors import ExperimentError

# Options that a dataset's card may set, and that are obeyed here, or name the dataset.
_OBEYED = {
    "name", "version", "data_dir", "data_files", "description", "features", "sep", "delimiter",
    "names", "column_names", "header", "encoding", "field",
}  # fmt: skip


def form_of_card(
    builder: datasets.DatasetBuilder, names: Sequence[str], form: Format, place: str
) -> Format:
    """The format, with what the dataset's card says where the config says nothing.

    Raises ExperimentError where the card sets an option that is not read here.
    """
    config: Any = builder.config
    unknown = []
    for option in dataclasses.fields(config):
        has_default = option.default is not dataclasses.MISSING
        value = getattr(config, option.name)
        if has_default and option.name not in _OBEYED and value != option.default:
            unknown.append(f"{option.name}={value!r}")
    if unknown:
        raise ExperimentError(
            f"{place}: its card (README.md) sets options of `datasets` that attnlab does not read: "
            f"{', '.join(unknown)}; convert the files to json, jsonl or parquet"
        )

    separator = getattr(config, "sep", None)
    if separator is not None and len(separator) != 1:
        raise ExperimentError(
            f"{place}: its card (README.md) separates fields by {separator!r}; attnlab reads "
            "tables with one character between two fields"
        )
    encoding = getattr(config, "encoding", None)
    if encoding is not None and not is_text_encoding(encoding):
        raise ExperimentError(
            f"{place}: its card (README.md) names the encoding {encoding!r}, which Python does not "
            "know; name it by data.encoding"
        )
    named = None if form.columns is not None else getattr(config, "names", None)
    # A separator counts where it is another one than all files have anyway.
    usual = {SEPARATORS.get(kind_of(name, form) or "") for name in names}
    if len(usual) != 1 or separator in usual:
        separator = None
    if encoding == "utf-8":
        encoding = None
    return replace(
        form,
        columns=form.columns or named,
        separator=form.separator or separator,
        encoding=form.encoding or encoding,
        field=getattr(config, "field", None),
        replaces_header=named is not None and getattr(config, "header", None) == 0,
    )
