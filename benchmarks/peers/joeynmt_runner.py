"""JoeyNMT 2.3.0 at one job, in its own environment: `python joeynmt_runner.py '<job as JSON>'`.

Trains by its own entry (`joeynmt.training.train`) or decodes by its own search
(`joeynmt.search.search`); the last line of the output has the counts, as JSON. The code here only
chooses its settings, counts, and repairs what breaks with the present torch.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import joeynmt.builders
import joeynmt.datasets
import joeynmt.search
import joeynmt.training
import torch
from joeynmt.config import parse_global_args
from joeynmt.prediction import prepare
from step_meter import StepMeter, cpu_seconds
from torch.optim.lr_scheduler import ReduceLROnPlateau


def main(job: dict[str, Any]) -> dict[str, float]:
    torch.set_num_threads(1)
    mend()
    return train(job) if job["task"] == "train" else decode(job)


def train(job: dict[str, Any]) -> dict[str, float]:
    """Train, and count from the step after the warm-up on.

    The model folder holds the checkpoint afterwards.
    """
    meter = StepMeter(job["warm_up"], job["steps"])
    parameters = 0
    original = joeynmt.training.TrainManager._train_step

    def counted(self: Any, batch: Any) -> Any:
        nonlocal parameters
        parameters = sum(p.numel() for p in self.model.parameters())
        meter.begins(int(batch.ntokens))
        return original(self, batch)

    joeynmt.training.TrainManager._train_step = counted
    if job["batches"] is not None:
        take_given_batches(json.loads(Path(job["batches"]).read_text()), "train")
    folder = Path(job["model"])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    joeynmt.training.train(
        rank=0, world_size=None, cfg=configuration(job, meter.steps_to_train), skip_test=True
    )
    return {"parameters": parameters, **meter.found()}


def decode(job: dict[str, Any]) -> dict[str, float]:
    """Decode the test split; texts are not made of the tokens that it finds."""
    if job["batches"] is not None:
        take_given_batches(json.loads(Path(job["batches"]).read_text()), "test")
    model, _, _, test = prepare(
        parse_global_args(configuration(job, 1), mode="test"), rank=0, mode="test"
    )
    model.eval()
    batches = test.make_iter(
        batch_size=job["batch_size"],
        pad_index=model.pad_index,
        eos_index=model.eos_index,
        device=torch.device("cpu"),
    )
    sentences = tokens = 0
    started = cpu_seconds()
    for batch in batches:
        batch.sort_by_src_length()
        found, _, _ = joeynmt.search.search(
            model=model,
            batch=batch,
            beam_size=job["beam"],
            beam_alpha=1.0,
            max_output_length=job["max_length"],
            return_prob="none",
            return_attention=False,
        )
        sentences += len(found)
        tokens += sum(length(row, model.eos_index, model.pad_index) for row in found.tolist())
    return {"cpu_seconds": cpu_seconds() - started, "sentences": sentences, "tokens": tokens}


def length(row: list[int], eos: int, pad: int) -> int:
    """Tokens of a hypothesis, `<eos>` included where it came."""
    return row.index(eos) + 1 if eos in row else len([token for token in row if token != pad])


def configuration(job: dict[str, Any], steps: int) -> dict[str, Any]:
    """The job as JoeyNMT's own configuration; what is not named has its default."""
    text = Path(job["text"])
    side = {
        "level": "word",
        "lowercase": False,
        "voc_min_freq": job["min_frequency"],
        "max_length": -1,
    }
    never = 1_000_000
    return {
        "name": "benchmark",
        "model_dir": job["model"],
        "use_cuda": job.get("device") == "cuda",
        "random_seed": job["seed"],
        "data": {
            "train": str(text / "train"),
            "dev": str(text / "validation"),
            "test": str(text / "test"),
            "dataset_type": "plain",
            "src": {"lang": "source", **side},
            "trg": {"lang": "target", **side},
        },
        "testing": {"batch_size": job["batch_size"], "beam_size": job["beam"], "beam_alpha": 1.0},
        "training": {
            "optimizer": "adam",
            "learning_rate": job["learning_rate"],
            "clip_grad_norm": job["clip"],
            "scheduling": "plateau",
            "batch_size": job["batch_size"],
            "batch_type": "sentence",
            "epochs": 1000,
            "updates": steps,
            "validation_freq": never,
            "logging_freq": 100,
        },
        "model": recurrent(job) if job["attention"] else transformer(job),
    }


def recurrent(job: dict[str, Any]) -> dict[str, Any]:
    embeddings = {"embedding_dim": job["embedding"], "scale": False, "dropout": job["dropout"]}
    return {
        "encoder": {
            "type": "recurrent",
            "rnn_type": "lstm",
            "embeddings": dict(embeddings),
            "hidden_size": job["encoder"],
            "bidirectional": True,
            "num_layers": 1,
            "dropout": job["dropout"],
        },
        "decoder": {
            "type": "recurrent",
            "rnn_type": "lstm",
            "embeddings": dict(embeddings),
            "hidden_size": job["decoder"],
            "num_layers": 1,
            "dropout": job["dropout"],
            "hidden_dropout": job["dropout"],
            "input_feeding": job["input_feeding"],
            "init_hidden": "bridge",
            "attention": job["attention"],
        },
    }


def transformer(job: dict[str, Any]) -> dict[str, Any]:
    """Norms before the sublayers, and one matrix for the target's embedding and the output."""
    embeddings = {"embedding_dim": job["embedding"], "scale": True, "dropout": job["dropout"]}
    side = {
        "type": "transformer",
        "embeddings": embeddings,
        "hidden_size": job["embedding"],
        "num_layers": job["blocks"],
        "num_heads": job["heads"],
        "ff_size": job["feed_forward"],
        "dropout": job["dropout"],
        "layer_norm": "pre",
    }
    return {"tied_softmax": True, "encoder": dict(side), "decoder": dict(side)}


def take_given_batches(batches: list[list[int]], split: str) -> None:
    """Make the sampler of a split return these rows, batch by batch, instead of its own.

    After the last batch it starts again.
    """
    own = joeynmt.datasets.SentenceBatchSampler

    class GivenBatches(own):  # type: ignore[misc, valid-type]
        def __iter__(self) -> Any:
            return iter(batches) if self.sampler.data_source.split == split else super().__iter__()

    joeynmt.datasets.SentenceBatchSampler = GivenBatches


def mend() -> None:
    """What JoeyNMT expects of torch and the present one does not have."""

    def without_verbose(**settings: Any) -> ReduceLROnPlateau:
        settings.pop("verbose", None)
        return ReduceLROnPlateau(**settings)

    joeynmt.builders.ReduceLROnPlateau = without_verbose
    load = torch.load
    torch.load = lambda *args, **kwargs: load(*args, **{"weights_only": False, **kwargs})


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
