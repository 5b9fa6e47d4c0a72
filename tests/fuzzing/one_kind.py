"""The fuzzer of one kind of file: `python one_kind.py maps 60`. Its process ends with it; see by_coverage.py."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "build" / "fuzzing"

with atheris.instrument_imports(include=["attnlab", "yaml", "omegaconf", "zipfile"]):
    import numpy as np
    import torch

    from attnlab.errors import ExperimentError
    from attnlab.evaluation.attention_map import AttentionMap, load_maps, save_maps
    from attnlab.files import read_own_record
    from attnlab.model.model_folder import read_config, read_facts
    from attnlab.stages.compose import read_params
    from attnlab.tracking.run_folder import RunState
    from attnlab.training.checkpoints import CheckpointFiles, checkpoint_step
    from attnlab.training.spool import MetricSpool

# Kind: the file's name, what reads it, and what it may raise.
READERS: dict[str, tuple[str, Callable[[Path], object], type[Exception]]] = {
    "params": ("params.yaml", read_params, ExperimentError),
    "metrics": ("metrics.jsonl", lambda path: MetricSpool(path).read(), ExperimentError),
    "facts": ("model.json", lambda path: read_facts(path.parent), ExperimentError),
    "config": ("config.json", lambda path: read_config(path.parent), ExperimentError),
    "record": ("run.json", lambda path: read_own_record(path, RunState, "remove it"), ExperimentError),
    "maps": ("maps.npz", load_maps, ExperimentError),
    "checkpoint": ("last.ckpt", checkpoint_step, ValueError),  # of which whoever goes on makes a sentence
}
SEEDS = {
    "params": "seed: 1\nmodel/attention: dot\noverrides: [seed=1]\ndata: &x {a: !!int 3, b: *x}\n",
    "metrics": '{"time": 1, "step": 2, "epoch": null, "metrics": {"loss": 1.5, "bleu": "nan"}}\n',
    "facts": '{"identity": "0", "num_classes": null, "source_vocabulary_size": 3, "step": 1}',
    "config": '{"model": {"_target_": "attnlab.model.seq2seq.Seq2Seq"}}',
    "record": '{"status": "FINISHED", "started": 1, "opened": 1, "safe_offset": 3, "record": {"config": {}}}',
}


def write_seed(kind: str, path: Path) -> None:
    """A file as it should be, from which the others are made."""
    if kind == "maps":
        save_maps([AttentionMap(["a", "한"], ["c"], np.ones((1, 2)))], path)
    elif kind == "checkpoint":
        CheckpointFiles().save_checkpoint({"global_step": 3, "weights": torch.ones(3)}, path)
    else:
        path.write_text(SEEDS[kind], encoding="utf-8")


def fuzz(kind: str, seconds: int) -> None:
    """Try files of one kind; ends the process, with another code than 0 where something else came out."""
    name, reader, sentence = READERS[kind]
    corpus = PLACE / kind
    corpus.mkdir(parents=True, exist_ok=True)
    write_seed(kind, corpus / f"seed{Path(name).suffix}")
    path = Path(tempfile.mkdtemp(prefix="attnlab-"), name)

    def meet(content: bytes) -> None:
        path.write_bytes(content)
        try:
            reader(path)
        except sentence as error:
            if not str(error).strip():
                raise RuntimeError("it ended without a word") from error

    options = (f"-max_total_time={seconds}", "-max_len=4096", "-rss_limit_mb=4000", "-print_final_stats=1")
    atheris.Setup([sys.argv[0], str(corpus), *options, f"-artifact_prefix={PLACE}/{kind}-"], meet)
    atheris.Fuzz()


if __name__ == "__main__":
    fuzz(sys.argv[1], int(sys.argv[2]))
