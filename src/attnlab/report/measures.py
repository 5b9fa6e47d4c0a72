"""Measures of the reports: names, formats, and the better direction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from attnlab.errors import ExperimentError


@dataclass(frozen=True)
class Measure:
    """A metric of the test split, or a cost.

    better: ↑, ↓, or empty for neither.
    digits: after the decimal point.
    meaning: definition, and what it averages over.
    least, most: its range.
    factor: converts from the unit in files to the unit shown.
    """

    name: str
    label: str
    better: str
    digits: int
    meaning: str
    least: float = 0.0
    most: float = math.inf
    factor: float = 1.0

    @property
    def sign(self) -> int:
        """-1 where less is better, else 1."""
        return -1 if self.better == "↓" else 1

    @property
    def heading(self) -> str:
        return f"{self.label} {self.better}".strip()

    def shown(self, value: float | None, signed: bool = False) -> str:
        if value is None:
            return "–"
        return f"{value * self.factor:{'+' if signed else ''},.{self.digits}f}"


# In the order of the pages.
TRANSLATION = (
    Measure("bleu", "BLEU", "↑", 2, "0–100, n-gram counts summed over the corpus; free-running", most=100.0),
    Measure("chrf", "chrF2", "↑", 2, "0–100, character n-gram counts summed over the corpus; free-running", most=100.0),
    Measure("rouge1", "ROUGE-1", "↑", 2, "0–100, F1 of words, mean over texts (Lin 2004); free-running", most=100.0),
    Measure("rouge2", "ROUGE-2", "↑", 2, "0–100, F1 of pairs of words, mean over texts; free-running", most=100.0),
    Measure("rougeL", "ROUGE-L", "↑", 2, "0–100, F1 of the longest common subsequence; free-running", most=100.0),
    Measure("ter", "TER", "↓", 2, "edits per 100 reference words, summed over the corpus; free-running"),
    Measure("exact_match", "exact match", "↑", 4, "0–1, share equal to the reference; free-running", most=1.0),
    Measure("token_nll", "token NLL", "↓", 4, "nats, mean over all real target tokens, <eos> included; reference fed"),
    Measure("perplexity", "perplexity", "↓", 3, "exp of token NLL; reference fed"),
    Measure("aer", "AER", "↓", 4, "0–1, links summed over the corpus (Och and Ney 2003); reference fed", most=1.0),
    Measure("alignment_precision", "alignment precision", "↑", 4, "0–1, share of links that are possible", most=1.0),
    Measure("alignment_recall", "alignment recall", "↑", 4, "0–1, share of sure links that are found", most=1.0),
    Measure("attention_entropy", "attention entropy", "", 4, "nats, mean over target tokens; 0 looks at one token"),
    Measure(
        "attention_coverage", "attention coverage", "", 4,
        "0–1, mean over source tokens; 1 attended to all of them", most=1.0,
    ),
    Measure(
        "attention_diagonality", "attention diagonality", "", 4,
        "mean over target tokens; 1 on the diagonal, 0.56 if uniform", most=1.0,
    ),
    Measure("attention_pad_mass", "attention on pads", "", 4, "0–1, mean over target tokens", most=1.0),
    Measure("sentences", "sentences", "", 0, "in the test split"),
    Measure("target_tokens", "target tokens", "", 0, "real ones, <eos> included"),
)  # fmt: skip
CLASSIFICATION = (
    Measure("accuracy", "accuracy", "↑", 4, "0–1, share of sentences taken for what they are", most=1.0),
    Measure("f1", "F1", "↑", 4, "0–1, mean over the classes", most=1.0),
    Measure("nll", "NLL", "↓", 4, "nats, mean over sentences"),
    Measure("attention_entropy", "attention entropy", "", 4, "nats, mean over sentences; 0 looks at one token"),
    Measure("attention_pad_mass", "attention on pads", "", 4, "0–1, mean over sentences", most=1.0),
    Measure("sentences", "sentences", "", 0, "in the test split"),
)
CPU_SECONDS = Measure(
    "cpu_seconds", "CPU minutes", "↓", 2, "processor time of the training, validations not counted", factor=1 / 60
)
PEAK_MEGABYTES = Measure("peak_megabytes", "peak MB", "↓", 0, "the most memory that the training's process held")
COSTS = (CPU_SECONDS.name, PEAK_MEGABYTES.name)
# Counts in metrics.json that are no measures: facts of the test split.
_FACTS = ("sentences", "target_tokens")
# Default measures for ranking, the first that exists.
_FIRST = ("bleu", "exact_match", "accuracy")
_ALL = (*TRANSLATION, *CLASSIFICATION, CPU_SECONDS, PEAK_MEGABYTES)


def measure_named(name: str, known: Sequence[Measure] = _ALL) -> Measure:
    """The measure; one without a description for an unknown name."""
    unknown = Measure(name, name.replace("_", " "), "", 4, "", least=-math.inf)
    return next((each for each in known if each.name == name), unknown)


def in_order(names: Iterable[str]) -> list[str]:
    """Known names in the order of the pages, then costs, then unknown names."""
    there = set(names) - set(_FACTS)
    known = list(dict.fromkeys(each.name for each in _ALL if each.name in there))
    return known + sorted(there - set(known))


def chosen_measure(wanted: str | None, of_runs: Sequence[tuple[str, Iterable[str]]]) -> str:
    """The measure to rank by; raises ExperimentError where a run lacks it, or where it has no better direction.

    of_runs: the name of each run and its measures.
    """
    measured = [(name, set(names)) for name, names in of_runs]
    common = in_order(set.intersection(*(names for _, names in measured)))
    everywhere = [name for name in common if measure_named(name).better]
    if wanted is None:
        if not everywhere:
            raise ExperimentError("metric: the runs have no metric in common that systems can be ranked by")
        return next((name for name in _FIRST if name in everywhere), everywhere[0])
    if wanted in everywhere:
        return wanted
    allowed, lacking = ", ".join(everywhere), [name for name, names in measured if wanted not in names]
    if len(lacking) == len(measured):
        raise ExperimentError(f"metric must be null or one of {allowed}; got {wanted!r}")
    if lacking and measure_named(wanted).better:
        raise ExperimentError(f"metric: {wanted} is missing in {', '.join(lacking)}; all runs have {allowed}")
    raise ExperimentError(
        f"metric: {wanted} has no better direction, so systems cannot be ranked by it; choose one of {allowed}"
    )
