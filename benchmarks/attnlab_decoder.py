"""attnlab's decoding in one job: `python attnlab_decoder.py '<job as JSON>'`.

The last line of the output is JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from configuration import SHARED
from process_cost import this_process


def decode_job(model: Path, prepared: Path, precision: str, beam: int) -> dict[str, Any]:
    """beam 1 is greedy; precision: `fp32`, `bf16` or `int8`."""
    return {"model": str(model), "prepared": str(prepared), "precision": precision, "beam": beam}


def decode(job: dict[str, Any]) -> dict[str, float]:
    """Decode as the evaluation of translations does, without detokenising and without attention."""
    import torch

    from attnlab.data.datamodule import BatchedRows
    from attnlab.data.prepared import PreparedData
    from attnlab.data.sampler import Batching, BatchSampler
    from attnlab.model.fast.packed import weights_packed_once
    from attnlab.search.beam import BeamSearch
    from attnlab.search.ensemble import load_members
    from attnlab.search.greedy import GreedySearch

    torch.set_num_threads(1)
    [model] = load_members(Path(job["model"]), [])
    int8 = job["precision"] == "int8"
    search: GreedySearch | BeamSearch = GreedySearch(max_length=SHARED.max_length, int8=int8)
    if job["beam"] > 1:
        search = BeamSearch(
            size=job["beam"], length_penalty=1.0, max_length=SHARED.max_length, int8=int8
        )
    split = PreparedData(Path(job["prepared"])).split("test")
    batches = BatchSampler(
        split.source_lengths,
        split.target_lengths,
        Batching(by="sentences", size=SHARED.batch_size),
        shuffle=False,
    )
    rows = BatchedRows(split, model.padding)
    sentences = tokens = 0
    started = this_process().cpu_seconds
    half = torch.autocast("cpu", torch.bfloat16, enabled=job["precision"] == "bf16")
    with torch.no_grad(), half, weights_packed_once():
        for numbers in batches.batches():
            batch = rows[numbers]
            for best, *_ in search(model, batch.source, batch.source_mask):
                sentences += 1
                tokens += len(best.tokens) + best.finished
    return {
        "cpu_seconds": this_process().cpu_seconds - started,
        "sentences": sentences,
        "tokens": tokens,
    }


if __name__ == "__main__":
    print(json.dumps(decode(json.loads(sys.argv[1]))))
