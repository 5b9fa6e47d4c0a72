"""OpenNMT-py 3.5.1 at one job, in its own environment: `python opennmt_runner.py '<job as JSON>'`.

Trains by its own entry (`onmt.bin.train.train`) or decodes by its own translator
(`Translator.translate_batch`); the last line of the output has the counts, as JSON. The code here
only chooses its settings, counts, and repairs what breaks with the present torch.
"""

import json
import shutil
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

# Transforms that are unused here import these packages, which pin an old torch and an old numpy.
for name in ("ahocorasick", "fasttext", "spacy"):
    sys.modules.setdefault(name, types.ModuleType(name))

import onmt.bin.train  # noqa: E402
import onmt.bin.translate  # noqa: E402
import torch  # noqa: E402
from onmt.constants import CorpusTask  # noqa: E402
from onmt.inference_engine import InferenceEnginePY  # noqa: E402
from onmt.inputters import dynamic_iterator  # noqa: E402
from onmt.trainer import Trainer  # noqa: E402
from onmt.utils.parse import ArgumentParser  # noqa: E402
from step_meter import StepMeter, cpu_seconds  # noqa: E402


def main(job: dict[str, Any]) -> dict[str, float]:
    torch.set_num_threads(1)
    load = torch.load
    torch.load = lambda *args, **kwargs: load(*args, **{"weights_only": False, **kwargs})
    return train(job) if job["task"] == "train" else decode(job)


def train(job: dict[str, Any]) -> dict[str, float]:
    """Train, and count from the step after the warm-up on.

    The model folder holds the checkpoint afterwards.
    """
    meter = StepMeter(job["warm_up"], job["steps"])
    parameters = 0
    original = Trainer._gradient_accumulation

    def counted(self: Any, batches: Any, *rest: Any) -> Any:
        nonlocal parameters
        parameters = sum(p.numel() for p in self.model.parameters())
        target = torch.cat([batch["tgt"][:, 1:, 0].flatten() for batch in batches])
        real = int(target.ne(self.train_loss.padding_idx).sum())
        meter.begins(real)
        return original(self, batches, *rest)

    Trainer._gradient_accumulation = counted
    given = None if job["batches"] is None else json.loads(Path(job["batches"]).read_text())
    if given is not None:
        take_given_batches(given)
    folder = Path(job["model"])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for side in ("source", "target"):
        write_vocabulary(Path(job["text"]) / f"train.{side}", folder / f"{side}.vocabulary")
    arguments = settings(job, meter.steps_to_train)
    if given is not None:
        # A bucket of its own way holds the corpus several times over; this one holds it once.
        arguments += ["--bucket_size", str(sum(len(rows) for rows in given))]
    options, _ = onmt.bin.train._get_parser().parse_known_args(arguments)
    onmt.bin.train.train(options)
    return {"parameters": parameters, **meter.found()}


def decode(job: dict[str, Any]) -> dict[str, float]:
    """Decode the test split; texts are not made of the tokens that it finds."""
    folder, text = Path(job["model"]), Path(job["text"])
    [newest] = sorted(folder.glob("model_step_*.pt"))
    arguments = [
        "--model",
        str(newest),
        "--src",
        str(text / "test.source"),
        "--output",
        str(folder / "unused.txt"),
    ]
    arguments += [
        "--batch_size",
        str(job["batch_size"]),
        "--beam_size",
        str(job["beam"]),
        "--max_length_ratio",
        "0",
    ]
    arguments += [
        "--max_length",
        str(job["max_length"]),
        "--length_penalty",
        "wu",
        "--alpha",
        "1.0",
    ]
    if job["beam"] == 1:
        arguments += ["--random_sampling_topk", "1"]  # its greedy search; without it, a beam of one
    options = onmt.bin.translate._get_parser().parse_args(arguments)
    ArgumentParser.validate_translate_opts(options)
    ArgumentParser._get_all_transform_translate(options)
    ArgumentParser._validate_transforms_opts(options)
    ArgumentParser.validate_translate_opts_dynamic(options)
    engine = InferenceEnginePY(options)
    if job["batches"] is not None:
        take_given_batches(json.loads(Path(job["batches"]).read_text()))
    batches = dynamic_iterator.build_dynamic_dataset_iter(
        options, engine.transforms_cls, engine.vocabs, task=CorpusTask.INFER, device_id=-1
    )
    sentences = tokens = 0
    started = cpu_seconds()
    with torch.no_grad():
        for batch, _ in batches:
            found = engine.translator.translate_batch(batch, attn_debug=False)["predictions"]
            sentences += len(found)
            tokens += sum(len(best[0]) for best in found)
    return {"cpu_seconds": cpu_seconds() - started, "sentences": sentences, "tokens": tokens}


def settings(job: dict[str, Any], steps: int) -> list[str]:
    """The job as OpenNMT-py's own options.

    Other options have their defaults, except that there are no workers: batches are then made in
    the one process that is timed.
    """
    text, folder = Path(job["text"]), Path(job["model"])
    corpus = {
        "path_src": str(text / "train.source"),
        "path_tgt": str(text / "train.target"),
        "weight": 1,
    }
    options = {
        "data": json.dumps({"corpus": corpus}),
        "src_vocab": str(folder / "source.vocabulary"),
        "tgt_vocab": str(folder / "target.vocabulary"),
        "src_words_min_frequency": job["min_frequency"],
        "tgt_words_min_frequency": job["min_frequency"],
        "save_model": str(folder / "model"),
        "save_checkpoint_steps": 0,
        "train_steps": steps,
        "valid_steps": 1_000_000,
        "report_every": 50,
        "seed": job["seed"],
        "num_workers": 0,
        "batch_size": job["batch_size"],
        "batch_type": "sents",
        "word_vec_size": job["embedding"],
        "dropout": job["dropout"],
        "attention_dropout": 0,
        "optim": "adam",
        "learning_rate": job["learning_rate"],
        "max_grad_norm": job["clip"],
        **(recurrent(job) if job["attention"] else transformer(job)),
    }
    if job.get("device") == "cuda":
        options |= {"world_size": 1, "gpu_ranks": 0}
    flags = [] if job["attention"] else ["--position_encoding", "--share_decoder_embeddings"]
    return [
        *flags,
        *(part for name, value in options.items() for part in (f"--{name}", str(value))),
    ]


def recurrent(job: dict[str, Any]) -> dict[str, Any]:
    if job["decoder"] != 2 * job["encoder"]:
        raise ValueError("OpenNMT-py splits the decoder's width between the encoder's directions")
    return {
        "encoder_type": "brnn",
        "decoder_type": "rnn",
        "rnn_type": "LSTM",
        "layers": 1,
        "hidden_size": job["decoder"],
        "global_attention": job["attention"],
        "input_feed": int(job["input_feeding"]),
    }


def transformer(job: dict[str, Any]) -> dict[str, Any]:
    """Its norms stand before the sublayers."""
    return {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "layers": job["blocks"],
        "heads": job["heads"],
        "hidden_size": job["embedding"],
        "transformer_ff": job["feed_forward"],
    }


def take_given_batches(batches: list[list[int]]) -> None:
    """Use these rows, batch by batch, instead of OpenNMT's own division of a bucket.

    A bucket must hold each row once.
    """

    def given(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        by_row = {example["cid_line_number"]: (example, index) for example, index in data}
        return ([by_row[row] for row in rows] for rows in batches)

    dynamic_iterator.DynamicDatasetIter.batch_iter = given


def write_vocabulary(text: Path, into: Path) -> None:
    """A file of words and how often each occurs, as OpenNMT-py reads it."""
    words = Counter(
        word for line in text.read_text(encoding="utf-8").splitlines() for word in line.split()
    )
    into.write_text(
        "".join(f"{word}\t{count}\n" for word, count in words.most_common()), encoding="utf-8"
    )


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
