"""Train every score, all kinds of weights and every history: the tables of docs/atlas.md.

    python docs/make_atlas.py --corpora <folder with sigmorphon2020_kor>
    python docs/make_atlas.py --minutes 30 --only dates     # goes on where it was stopped
    python docs/make_atlas.py --minutes 9 --part 3/15       # one of 15 processes
    python docs/make_atlas.py --pages                       # trains nothing

The star: each score with the default weights and without a history, and with Bahdanau's score and
with scaled dot each of the other weights, and then each history. A training is a row of
docs/atlas/rows.csv, from which the page is written; what has a row is not trained again.
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean

import torch
from atlas_picture import Panel, atlas_figure
from filelock import FileLock
from measured_page import ROOT, revision, write_measured

from attnlab.experiment.composition import compose
from attnlab.plots.figure import save_png
from attnlab.studies.measurements import Point, train

CONF = ROOT / "conf"
PAGE = ROOT / "docs" / "atlas.md"
ROWS = ROOT / "docs" / "atlas" / "rows.csv"
PICTURE = ROOT / "docs" / "images" / "atlas.png"
COLUMNS = (
    "data",
    "choice",
    "seed",
    "exact_match",
    "aer",
    "attention_entropy",
    "cpu_seconds",
    "revision",
    "machine",
)
SEEDS = (1, 2, 3)
# What all trainings share: one validation, at the end, and greedy search.
COMMON = ("search=greedy", "tracking=none", "hardware.threads=1")
CENTRES = ("bahdanau", "scaled_dot")
# The star's arms: a group, the choice of it that the scores have, and what the page calls it.
ARMS = (("normaliser", "softmax", "weights"), ("history", "none", "histories"))
# A seed has learnt the task where at least this share of the test sentences is right. It was chosen
# before the first run.
LEARNT = 0.5


def steps(number: int) -> tuple[str, ...]:
    """A training of so many steps, validated at its end."""
    return f"training.max_steps={number}", f"training.validate_every={number}"


# The settings of each corpus; `<corpora>` stands for the folder of the real ones.
TASKS = {
    "dates": ("data=dates", *steps(500)),
    "copy": ("data=copy", *steps(500)),
    # The query has read the key whose value it looks for.
    "mqar": ("data=mqar", "data.repeat_keys=true", "model/decoder=step_then_attend", *steps(500)),
    "sigmorphon2020_kor": (
        "data=sigmorphon2020",
        "data.language=kor",
        "data.path=<corpora>",
        *steps(600),
    ),
}
# In the picture.
SHORT_NAMES = {"dates": "dates", "copy": "copy", "mqar": "recall", "sigmorphon2020_kor": "Korean"}


def choices() -> list[str]:
    """The points of the star, as overrides."""
    scores = [f"model/attention={name}" for name in names_in("attention") if name != "none"]
    arms = [
        f"model/attention={score} model/{group}={name}"
        for group, usual, _ in ARMS
        for name in names_in(group)
        if name != usual
        for score in CENTRES
    ]
    return [*scores, *arms]


def names_in(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / "model" / group).glob("*.yaml"))


def cells(only: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """(data, choice, seed), the first seed of all corpora and choices first."""
    for seed in SEEDS:
        for data in TASKS:
            if not only or data in only:
                for choice in choices():
                    yield data, choice, seed


def overrides(data: str, choice: str, seed: int, corpora: Path) -> list[str]:
    settings = [each.replace("<corpora>", str(corpora)) for each in TASKS[data]]
    return [*settings, *choice.split(), f"seed={seed}", *COMMON]


def rows() -> list[dict[str, str]]:
    if not ROWS.is_file():
        return []
    with ROWS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def measured(data: str, choice: str, seed: int, corpora: Path) -> dict[str, str]:
    """Train a cell, and read its row."""
    point = Point(choice, seed, compose(overrides(data, choice, seed, corpora)))
    train(point)
    metrics = json.loads((point.evaluated() / "metrics.json").read_text(encoding="utf-8"))
    names = ("exact_match", "aer", "attention_entropy")
    values = {name: f"{metrics[name]:.6f}" for name in names if name in metrics}
    of_cell = {"data": data, "choice": choice, "seed": str(seed)}
    cost = {"cpu_seconds": f"{60 * point.cpu_minutes:.1f}"}
    return of_cell | values | cost | {"revision": revision(), "machine": machine()}


def keep(row: dict[str, str]) -> None:
    """Append a row; other processes may do so at the same time."""
    with FileLock(f"{ROWS}.lock"):
        is_new = not ROWS.is_file()
        with ROWS.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(row)


def train_missing(
    only: Sequence[str], minutes: float, part: tuple[int, int], corpora: Path
) -> None:
    """Train what has no row, until the time is over."""
    end = time.monotonic() + 60 * minutes
    known = {(row["data"], row["choice"], int(row["seed"])) for row in rows()}
    missing = [cell for cell in cells(only) if cell not in known]
    number, of = part
    for data, choice, seed in missing[number - 1 :: of]:
        if time.monotonic() > end:
            break
        row = measured(data, choice, seed, corpora)
        keep(row)
        print(*row.values(), sep=" | ", flush=True)


# The page


def write_page() -> None:
    found = rows()
    draw_picture(found)
    lines = []
    for data in TASKS:
        lines += section(data, [row for row in found if row["data"] == data])
    write_measured(PAGE, "atlas", lines)


def draw_picture(found: Sequence[dict[str, str]]) -> None:
    """Draw the mean share of right sentences: the scores, then the arms of the star."""
    shares: dict[tuple[str, str], list[float]] = {}
    for row in found:
        shares.setdefault((row["choice"], row["data"]), []).append(float(row["exact_match"]))
    means = {cell: mean(of_cell) for cell, of_cell in shares.items()}

    scores = [name for name in names_in("attention") if name != "none"]
    stacks = [[panel("scores, with the softmax", means, scores, "model/attention={}")]]
    for score in CENTRES:
        stack = []
        for group, usual, words in ARMS:
            names = [name for name in names_in(group) if name != usual]
            choice = f"model/attention={score} model/{group}={{}}"
            stack.append(panel(f"{words}, with {score}", means, names, choice))
        stacks.append(stack)
    save_png(atlas_figure(stacks), PICTURE)


def panel(
    title: str, means: Mapping[tuple[str, str], float], names: Sequence[str], choice: str
) -> Panel:
    """A panel of the picture, with a row for each name.

    choice: the override, in which a name takes the place of `{}`.
    """
    shares = {
        (name, SHORT_NAMES[data]): means[choice.format(name), data]
        for name in names
        for data in TASKS
        if (choice.format(name), data) in means
    }
    return Panel(title, names, list(SHORT_NAMES.values()), shares)


def section(data: str, found: Sequence[dict[str, str]]) -> list[str]:
    """The table of a corpus, and how a cell of it is trained."""
    costs = costs_of_usual(found)
    command = (
        f"python pipelines/train.py {' '.join(TASKS[data])} <choice> seed=<n> {' '.join(COMMON)}"
    )
    lines = [f"### {data}", "", "```sh", command, "```", ""]
    if not found:
        return [*lines, "Not run yet.", ""]
    lines += [
        "| choice | exact match, % | learnt | AER, % | entropy, nats | CPU time |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for choice in choices():
        of_choice = [row for row in found if row["choice"] == choice]
        if of_choice:
            lines.append(line(choice, of_choice, costs))
    trained = sorted({f"{row['machine']}, revision {row['revision']}" for row in found})
    missing = len(choices()) * len(SEEDS) - len(found)
    left = f" {missing} trainings are not run yet." if missing else ""
    return [*lines, "", f"Trained: {len(found)}; {'; '.join(trained)}.{left}", ""]


def costs_of_usual(found: Sequence[dict[str, str]]) -> dict[str, float]:
    """{machine: mean CPU seconds of the usual choice's trainings there}."""
    costs: dict[str, list[float]] = {}
    for row in found:
        if row["choice"] == f"model/attention={CENTRES[0]}":
            costs.setdefault(row["machine"], []).append(float(row["cpu_seconds"]))
    return {machine: mean(of_machine) for machine, of_machine in costs.items()}


def line(choice: str, found: Sequence[dict[str, str]], costs: dict[str, float]) -> str:
    """The row of a choice; its cost is a multiple of the usual choice's on the same machine."""
    right = [float(row["exact_match"]) for row in found]
    learnt = sum(share >= LEARNT for share in right)
    multiples = [
        float(row["cpu_seconds"]) / costs[row["machine"]]
        for row in found
        if row["machine"] in costs
    ]
    times = f"{mean(multiples):.2f}" if multiples else "–"
    cells = [
        f"`{choice}`",
        percent(right),
        f"{learnt} of {len(found)}",
        percent([float(row["aer"]) for row in found if row["aer"]]),
        numbers([float(row["attention_entropy"]) for row in found if row["attention_entropy"]]),
        times,
    ]
    return f"| {' | '.join(cells)} |"


def percent(shares: Sequence[float]) -> str:
    return numbers([100 * share for share in shares], 1)


def numbers(values: Sequence[float], digits: int = 2) -> str:
    """The mean, and behind it each seed's value."""
    if not values:
        return "–"
    each = ", ".join(f"{value:.{digits}f}" for value in values)
    return f"**{mean(values):.{digits}f}** ({each})"


def machine() -> str:
    capability = torch.backends.cpu.get_cpu_capability()
    return f"{capability} {platform.machine()} torch {torch.__version__}"


def part(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    return int(number), int(of)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpora", type=Path, default=Path("corpora"), help="the real corpora")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="when to stop")
    parser.add_argument("--only", nargs="+", choices=list(TASKS), default=[], help="these corpora")
    parser.add_argument("--part", type=part, default=(1, 1), help="3/15: the third of 15 parts")
    parser.add_argument("--pages", action="store_true", help="only write the page")
    args = parser.parse_args()
    if not args.pages:
        train_missing(args.only, args.minutes, args.part, args.corpora)
    write_page()


if __name__ == "__main__":
    main()
