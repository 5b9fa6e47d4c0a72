"""Grouping runs into systems: what differs between them, and their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from attnlab.config.names import setting_name
from attnlab.report.compared_runs import ComparedRun, ComparedRuns, LeftOut
from attnlab.runs.sweep_record import name_of, short_key

SEED = "seed"
# Columns of the table of runs; choices need other names.
_TAKEN = (SEED, "run", "system", "run_id")
# Settings that do not affect results.
_IRRELEVANT = ("tracking.", "paths.", "chain", "rerun", "save_every_minutes")


def group_into_systems(
    found: Sequence[ComparedRun],
    varied: str | None,
    facts: list[tuple[str, str]],
    left_out: list[LeftOut],
    parent: str | None,
) -> ComparedRuns:
    """Name the systems and shorten the names of the choices.

    A run with the choices and the seed of an earlier one is left out: it is no second seed.

    found: runs without a system, their choices by full keys.
    varied: what varies, for the title; None for the names of the choices.
    """
    keys: dict[str, None] = {}
    for run in found:
        keys |= dict.fromkeys(run.choices)
    short = short_names(list(keys))
    if varied is None:
        varied = " × ".join(short.values()) or "seeds"
        facts = [*facts, ("varied", ", ".join(short.values()) or "nothing but the seed")]

    # By system and seed.
    different: dict[tuple[str, str], ComparedRun] = {}
    left_out = list(left_out)
    systems = system_names([run.choices for run in found])
    for run, system in zip(found, systems, strict=True):
        earlier = different.get((system, run.seed))
        if earlier is None:
            different[system, run.seed] = _in_system(run, system, short)
        else:
            left_out.append(LeftOut(run.name, f"the same choices and seed as {earlier.name}"))

    runs = list(different.values())
    num_systems = len({run.system for run in runs})
    title = f"{varied}: {_counted(len(runs), 'run')} of {_counted(num_systems, 'system')}"
    return ComparedRuns(title, facts, runs, left_out, parent)


def _in_system(run: ComparedRun, system: str, short: Mapping[str, str]) -> ComparedRun:
    """The run with its system, its choices by short names, and the other parameters that matter.

    short: {key of a choice: its short name}.
    """
    choices = {short[key]: value for key, value in run.choices.items()}
    names_of_choices = {*short, *map(short_key, short), SEED}
    others = {}
    for key, value in run.parameters.items():
        # A group of choices is `model/attention` in a sweep, and `model.attention` in the params.
        is_choice = key in names_of_choices or key.replace(".", "/") in names_of_choices
        if not is_choice and not key.startswith(_IRRELEVANT):
            others[key] = value
    return replace(run, system=system, choices=choices, parameters=others)


def _counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


def varying(runs: Sequence[Mapping[str, str]]) -> list[str]:
    """The params that differ between systems.

    These are short ones such as `attention`, and as few dotted ones as possible. A choice implies
    many dotted params, its class and its sizes. So these count only where runs that agree in all
    short ones differ in them, as in a sweep over the learning rate.

    runs: the params of each.
    """
    all_keys = set[str]().union(*runs)
    dotted_keys = [key for key in all_keys if "." in key]
    short_keys = [key for key in all_keys if "." not in key]

    short = _differing(runs, short_keys)
    attends = [params for params in runs if params.get("attention") != "none"]
    if len(attends) < len(runs) and "decoder" not in _differing(attends, short):
        # Without attention there is one decoder: no further choice
        short = [key for key in short if key != "decoder"]

    runs_by_choices: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for params in runs:
        choices = tuple(params.get(key, "") for key in short)
        runs_by_choices.setdefault(choices, []).append(params)
    dotted: list[str] = []
    for alike in runs_by_choices.values():
        dotted += _differing(alike, dotted_keys)
    return list(dict.fromkeys([*short, *dotted]))


def _differing(runs: Sequence[Mapping[str, str]], keys: Iterable[str]) -> list[str]:
    """Those of the keys in which runs differ and that can affect results; sorted, without seed."""
    differing = []
    for key in sorted(keys):  # the tracker returns params in any order
        values = {params.get(key) for params in runs}
        is_relevant = key != SEED and not key.startswith(_IRRELEVANT)
        if is_relevant and len(values) > 1:
            differing.append(key)
    return differing


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """{key: its words, `teacher forcing ratio`}, or the whole key where the words collide."""
    uses = Counter(map(setting_name, keys))
    names = {}
    for key in keys:
        words = setting_name(key)
        is_unique = uses[words] == 1 and words not in _TAKEN
        names[key] = words if is_unique else key
    return names


def system_names(choices: Sequence[Mapping[str, str]]) -> list[str]:
    """A name for each of these choices (full keys, without a seed).

    Two names are equal exactly where the choices are. Names round numbers; where two systems would
    share a name, both get their choices as written.
    """
    names = [name_of(each) for each in choices]
    written = [_as_written(each) for each in choices]
    written_by_name: dict[str, set[str]] = {}
    for name, text in zip(names, written, strict=True):
        written_by_name.setdefault(name, set()).add(text)

    unique = []
    for name, text in zip(names, written, strict=True):
        is_shared = len(written_by_name[name]) > 1
        unique.append(text if is_shared else name)
    return unique


def _as_written(choices: Mapping[str, str]) -> str:
    return " · ".join(f"{key}={value}" for key, value in choices.items())
