"""Choices that vary between runs, and the names of systems made from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from attnlab.sweeps.record import name_of, short_key

SEED = "seed"
# Columns of the table of runs; choices need other names.
_TAKEN = (SEED, "run", "system", "run_id")
# Settings that do not affect results.
_IRRELEVANT = ("tracking.", "paths.", "chain", "rerun", "save_every_minutes")


def varying(runs: Sequence[Mapping[str, str]]) -> list[str]:
    """The params that differ between systems: short ones such as `attention`, and as few dotted ones as possible.

    A choice implies many dotted params, its class and its sizes. So these count only where runs that agree in all short
    ones differ in them, as in a sweep over the learning rate.

    runs: the params of each.
    """
    short = [
        key
        for key in _differing(runs, (key for params in runs for key in params if "." not in key))
        if not _goes_with_no_attention(key, runs)
    ]
    groups: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for params in runs:
        groups.setdefault(tuple(params.get(key, "") for key in short), []).append(params)
    dotted = [
        key
        for group in groups.values()
        for key in _differing(group, (key for params in group for key in params if "." in key))
    ]
    return list(dict.fromkeys([*short, *dotted]))


def _goes_with_no_attention(key: str, runs: Sequence[Mapping[str, str]]) -> bool:
    """Whether `key` is the decoder and differs only between runs with and without attention: that is one choice."""
    without = {params.get("attention") == "none": set[str | None]() for params in runs}
    for params in runs:
        without[params.get("attention") == "none"].add(params.get(key))
    return key == "decoder" and len(without) == 2 and all(len(values) == 1 for values in without.values())


def _differing(runs: Sequence[Mapping[str, str]], keys: Iterable[str]) -> list[str]:
    return [
        key
        for key in sorted(set(keys))  # the tracker returns params in any order
        if key != SEED and not key.startswith(_IRRELEVANT) and len({params.get(key) for params in runs}) > 1
    ]


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """{key: its last word}, or the whole key where last words collide."""
    ends = Counter(map(short_key, keys))
    return {key: end if ends[end := short_key(key)] == 1 and end not in _TAKEN else key for key in keys}


def system_names(choices: Sequence[Mapping[str, str]]) -> list[str]:
    """A name for each of these choices (full keys, without a seed), equal exactly for equal choices.

    Names round numbers; where two systems would share a name, both get their choices as written.
    """
    written = [" · ".join(f"{key}={value}" for key, value in each.items()) for each in choices]
    names = [name_of(each) for each in choices]
    sharing: dict[str, set[str]] = {}
    for name, text in zip(names, written, strict=True):
        sharing.setdefault(name, set()).add(text)
    return [text if len(sharing[name]) > 1 else name for name, text in zip(names, written, strict=True)]
