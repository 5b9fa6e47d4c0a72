"""A sweep as it lies on disk, made up: small, with Hangul, and with a job that failed."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.files import write_json, write_json_lines
from attnlab.runs.sweep_record import JobRecord, SweepFolder, SweepRecord, name_of
from attnlab.tasks.translation.evaluation import Evaluation
from attnlab.tasks.translation.metrics import TextMetrics, by_length, signatures
from attnlab.training.spool import SPOOL_NAME, MetricSpool

IDENTITY = "0a1b2c3d4e5f6789"
FIRST = "<b>고양이</b> & 학교 the cat sat ."
WORDS = [*FIRST.split(), "오늘", "어제", "나는", "간다", "먹었다", "1998", "년", "mat", ","]
# A share of sentences that each system gets right.
SYSTEMS = {"bahdanau": 0.95, "dot": 0.75, "none": 0.2}


def references(count: int = 40) -> list[str]:
    """Texts of 5 to 12 words, the same every time."""
    draw = random.Random(0)
    return [
        FIRST,
        *(" ".join(draw.choices(WORDS, k=draw.randint(5, 12))) for _ in range(count - 1)),
    ]


def hypotheses(right: float, seed: int, texts: Sequence[str]) -> list[str]:
    """Of the texts a share as they are, and in the others some words by chance."""
    draw = random.Random(1000 * right + seed)
    written = []
    for text in texts:
        words = text.split()
        if draw.random() > right:
            words = [word if draw.random() < 0.6 else draw.choice(WORDS) for word in words]
        written.append(" ".join(words))
    return written


def write_translations(
    folder: Path, right: float, seed: int, attends: bool = True, count: int = 40
) -> dict[str, Any]:
    """An evaluation folder; returns its metrics."""
    texts = references(count)
    found = hypotheses(right, seed, texts)
    lengths = [len(text.split()) for text in texts]
    text = TextMetrics("13a")
    text.update(found, texts)
    nll = 2 - right + seed / 100
    metrics = {
        **text.compute(),
        "token_nll": nll,
        "perplexity": None,
        "sentences": count,
        "target_tokens": 9 * count,
    }
    if attends:
        metrics["aer"] = 0.1 + seed / 100
    rows = [
        {
            "source": f"source {number} → 원문 {reference}",
            "reference": reference,
            "hypothesis": ours,
            "score": -0.5,
            "source_length": length,
            "exact": ours == reference,
        }
        for number, (reference, ours, length) in enumerate(zip(texts, found, lengths, strict=True))
    ]
    maps = [
        AttentionMap(
            ["source", "→", *row["reference"].split()[:3], "<eos>"],
            [*row["hypothesis"].split()[:4], "<eos>"],
            np.full((5, 6), 1 / 6),
            f"{row['source']} → {row['hypothesis']}",
        )
        for row in rows[::13]
    ]
    buckets = by_length(lengths, found, texts, "13a")
    Evaluation(metrics, signatures("13a"), rows, buckets, maps if attends else [], [], []).write(
        folder
    )
    return metrics


def write_predictions(folder: Path, right: float, seed: int, count: int = 40) -> dict[str, Any]:
    """An evaluation folder of a classifier with three classes; returns its metrics."""
    import torch
    from torchmetrics.functional.classification import multiclass_accuracy, multiclass_f1_score

    draw = random.Random(1000 * right + seed)
    labels = [number % 3 for number in range(count)]
    taken = [label if draw.random() < right else draw.randrange(3) for label in labels]
    both = torch.tensor(taken), torch.tensor(labels)
    metrics = {
        "accuracy": float(multiclass_accuracy(*both, num_classes=3, average="micro")),
        "f1": float(multiclass_f1_score(*both, num_classes=3, average="macro")),
        "nll": 1.5 - right,
        "sentences": count,
    }
    folder.mkdir(parents=True, exist_ok=True)
    names = ("이별", "사랑", "<일상>")
    rows = [
        {
            "text": f"문장 {number}",
            "label": names[label],
            "prediction": names[ours],
            "probability": 0.5,
            "length": 2 + number % 9,
            "correct": label == ours,
        }
        for number, (label, ours) in enumerate(zip(labels, taken, strict=True))
    ]
    write_json(folder / "metrics.json", metrics)
    write_json(folder / "signatures.json", {"accuracy": "share of sentences"})
    write_json_lines(folder / "predictions.jsonl", rows)
    maps = [
        AttentionMap(
            ["문장", str(number), "<eos>"],
            [row["prediction"]],
            np.full((1, 3), 1 / 3),
            row["prediction"],
        )
        for number, row in enumerate(rows[:2])
    ]
    save_maps(maps, folder / "attention.npz")
    return metrics


SIDE = {
    "tokens": 60,
    "mean_length": 6.0,
    "p50_length": 6,
    "p95_length": 9,
    "max_length": 9,
    "unknown_tokens": 1,
    "unknown_rate": 0.0167,
    "length_histogram": [[3, 2], [6, 5], [9, 3]],
}


def write_stages(
    folder: Path,
    info: dict[str, Any],
    vocabulary: dict[str, int],
    split: dict[str, Any],
    *lines: str,
):
    """Prepared data with this split three times, and a history."""
    stats = {
        "vocabulary": vocabulary,
        "splits": dict.fromkeys(("train", "validation", "test"), split),
    }
    for name in ("data", "training"):
        (folder / name).mkdir(parents=True)
    (folder / "data" / "stats.json").write_text(json.dumps(stats))
    (folder / "data" / "data.json").write_text(json.dumps(info))
    (folder / "training" / "history.csv").write_text(
        "\n".join(["step,epoch,name,value", *lines]) + "\n"
    )


def write_point(runs: Path, identity: str, quality: str, cpu_seconds: float, rising: float) -> None:
    """Write what training leaves in the experiment's own folder.

    quality: the name of a validation metric.
    """
    point = runs / "points" / identity
    (point / "training").mkdir(parents=True, exist_ok=True)
    (point / "done.json").write_text(
        json.dumps({"step": 30, "quality": 0.5, "training_cpu_seconds": cpu_seconds})
    )
    loss = "validation/teacher_forced/token_nll" if "free_running" in quality else "validation/nll"
    lines = ["step,epoch,name,value"]
    for step in (10, 20, 30):
        lines += [
            f"{step},0,{quality},{rising * step}",
            f"{step},0,{loss},{2 - rising * step / 100}",
        ]
    (point / "training" / "history.csv").write_text("\n".join(lines) + "\n")
    spool = MetricSpool(point / SPOOL_NAME)
    for megabytes in (400.0, 500.0 + cpu_seconds):
        spool.append({"system/peak_training_megabytes": megabytes}, 10)
    spool.close()


def write_sweep(
    runs: Path,
    systems: dict[str, float] = SYSTEMS,
    seeds: Sequence[int] = (1, 2),
    translates: bool = True,
    failed: bool = True,
    identity: str = IDENTITY,
    started: float = 1000.0,
) -> SweepFolder:
    """A sweep over `model/attention` and `seed` in a runs folder; one more point has failed."""
    made = [({"model/attention": system}, right) for system, right in systems.items()]
    return _write_sweep(runs, made, seeds, translates, failed, identity, started)


def write_crossed_sweep(
    runs: Path, right: Mapping[tuple[str, str], float], seeds: Sequence[int] = (1, 2, 3)
) -> SweepFolder:
    """A sweep over `model/attention`, `training/teacher_forcing` and `seed`; no point has failed.

    right: {(attention, teacher forcing): the share of sentences that is right}.
    """
    made = []
    for (attention, forcing), share in right.items():
        choices = {"model/attention": attention, "training/teacher_forcing": forcing}
        made.append((choices, share))
    return _write_sweep(runs, made, seeds, True, False, IDENTITY, 1000.0)


def _write_sweep(
    runs: Path,
    made: Sequence[tuple[dict[str, str], float]],
    seeds: Sequence[int],
    translates: bool,
    failed: bool,
    identity: str,
    started: float,
) -> SweepFolder:
    """made: (choices, share of right sentences) of each system."""
    folder = SweepFolder(runs / "sweeps" / identity)
    varies = [*made[0][0], "seed"]
    points = [(choices, right, seed) for choices, right in made for seed in seeds]
    overrides = []
    for key in made[0][0]:
        values = dict.fromkeys(choices[key] for choices, _ in made)
        overrides.append(f"{key}={','.join(values)}")
    folder.write(
        SweepRecord(
            identity=identity,
            name=" × ".join(key.rpartition("/")[2] for key in varies),
            varies=varies,
            overrides=[*overrides, f"seed={','.join(map(str, seeds))}"],
            points=len(points) + failed,
            run_id=None,
            started=started,
            ended=started + 100,
        )
    )
    for number, (choices, right, seed) in enumerate(points):
        output = folder.path / str(number)
        if translates:
            attends = choices["model/attention"] != "none"
            write_translations(output / "evaluation", right, seed, attends)
        else:
            write_predictions(output / "evaluation", right, seed)
        quality = "validation/free_running/bleu" if translates else "validation/accuracy"
        point = f"{identity[:8]}{number:08}"
        write_point(runs, point, quality, 60.0 * (number + 1), right + seed / 10)
        model = runs / "points" / point / "model"
        model.mkdir(exist_ok=True)
        write_json(model / "config.json", {"seed": seed})
        folder.write_job(_job(number, choices, seed, output, "finished", point))
    if failed:
        output = folder.path / str(len(points))
        choices = {"model/attention": "general"}
        folder.write_job(_job(len(points), choices, 1, output, "failed", None))
    return folder


def _job(
    number: int,
    of_system: Mapping[str, str],
    seed: int,
    output: Path,
    status: Any,
    point: str | None,
) -> JobRecord:
    choices = {**of_system, "seed": str(seed)}
    return JobRecord(
        number=number,
        name=name_of(choices),
        choices=choices,
        overrides=[f"{key}={value}" for key, value in choices.items()],
        status=status,
        start_of_sweep=1000.0,
        started=1000.0 + number,
        ended=1001.0 + number,
        output=str(output),
        identity=point,
        error="the <disk> is full" if status == "failed" else None,
    )
