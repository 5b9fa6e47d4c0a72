"""Bad input at the real entry points: errors with place and remedy, and nothing left behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from entry_points import ATTENTIONS, Command, Ended
from omegaconf import ListConfig, OmegaConf

from attnlab.experiment.config_sources import SEVERAL_CHOICES
from attnlab.project import CONF

CHOICES = {
    "choice": ("model/attention=foo", f"model/attention must be one of {ATTENTIONS}; got 'foo'"),
    "list of choices": (
        "model/attention=[dot,general]",
        "error: model/attention takes one choice, got [dot,general]; with -m, write "
        "model/attention=dot,general\n",
    ),
    "list of one choice": (
        "search=[greedy]",
        "error: search takes one choice, got [greedy]; write search=greedy\n",
    ),
    "renamed preset": (
        "experiment=lesson_bahdanau",
        "error: experiment=lesson_bahdanau is now experiment=lesson/bahdanau\n",
    ),
    "preset of a lesson": (
        "experiment=lesson/dott",
        "; got 'lesson/dott' (did you mean lesson/dot?)",
    ),
    "group": (
        "foo/bar=x",
        "foo/bar is not a group of the config; the groups are: callbacks, data, data/tokenizer,",
    ),
    "near group": ("model/atention=dot", "did you mean model/attention?"),
    "dot for slash": (
        "training.optimizer=adam",
        "training.optimizer must be an Optimizer (a mapping with _target_), got 'adam'; to choose "
        "one by name, write slashes, as in model/attention=dot",
    ),
    "top key": ("foo=1", "foo is not a setting; the config has: callbacks, chain, data"),
    "key": (
        "training.foo=1",
        "training.foo is not a setting; training has: accumulate, attention_loss, attention_sche",
    ),
    "near key": ("training.max_step=4", "did you mean training.max_steps?"),
    "key that the file of a logger leaves out": (
        ("loggers=csv", "loggers.csv.save_dir=/tmp/x"),
        "loggers.csv.save_dir is a setting that the config leaves out; write "
        "+loggers.csv.save_dir=... to set it\n",
    ),
    "key that the file of an optimizer leaves out": (
        ("training/optimizer=sgd", "training.optimizer.nesterov=true"),
        "training.optimizer.nesterov is a setting that the config leaves out; write "
        "+training.optimizer.nesterov=... to set it\n",
    ),
    "key of a callback that is not chosen": (
        "callbacks.early_stopping.patience=3",
        "callbacks.early_stopping is not chosen; write callbacks=early_stopping, or "
        "callbacks=[...,early_stopping] beside others\n",
    ),
    "key of a callback beside others": (
        ("callbacks=lr_monitor", "callbacks.early_stopping.patience=3"),
        "callbacks.early_stopping is not chosen; write callbacks=early_stopping",
    ),
    "place of a key": (
        "hidden_size=4",
        "did you mean model.encoder.hidden_size or model.decoder.hidden_size?",
    ),
    "key below a value": ("seed.x=1", "seed.x is not a setting, for seed holds no settings"),
    "validation": (
        "+training.validation_search.replace_unknown=true",
        "training.validation_search.replace_unknown must be false",
    ),
    "no attention asked": ("model/decoder=no_attention", "choose model/attention=none"),
    "no data": ("data=hub", "data.path and data.dataset are both null"),
    "target": (
        "data._target_=os.system",
        "data._target_ is 'os.system', but it is not a subclass of ",
    ),
    "nowhere": ("seed=${nowhere}", "seed: Interpolation key 'nowhere' not found"),
    "environment": (
        "seed=${oc.env:ATTNLAB_ABSENT}",
        "Environment variable 'ATTNLAB_ABSENT' not found",
    ),
    "resolver": ("seed=${foo:x}", "seed: Unsupported interpolation type foo"),
    "not an override": ("seed", "error: 'seed'"),
    "syntax": (
        "seed=[1",
        "'seed=[1' cannot be read: close a list or a mapping, and put text with [ in quotes",
    ),
    "hangul": (
        "data.path=한글",
        "'한' must stand in quotes that reach the program, as in \"data.path='한글'\"",
    ),
    "accent": (
        "data.path=naïve",
        "'ï' must stand in quotes that reach the program, as in \"data.path='naïve'\"",
    ),
    "tilde": (
        "paths.data=~/x",
        "'~' must stand in quotes that reach the program, as in \"paths.data='~/x'\"",
    ),
    "ampersand": (
        "paths.data=a&b",
        "'&' must stand in quotes that reach the program, as in \"paths.data='a&b'\"",
    ),
    "accent in a key": ("naïve=1", "'ï' cannot stand in a key"),
    "comma in text": ("data.path=안녕, 세계", "as in \"data.path='안녕, 세계'\"\n"),
    "dashes": ("--seed=3", "'--seed=3' cannot be read: leave the dashes out: seed=3\n"),
    "two equals signs": ("seed==2", "'seed==2' cannot be read: one = is enough: seed=2\n"),
    "no model": (
        "model=null",
        "model must be one of classifier, seq2seq, or left out for the default; got null",
    ),
    "no task": (
        "task=null",
        "task must be one of classification, translation, or left out for the default; got null",
    ),
    "trainer": (
        "trainer={max_steps:3}",
        "trainer.max_steps is set by attnlab: use training.max_steps\n",
    ),
    "key of trainer": (
        "trainer.max_epochs=2",
        "trainer.max_epochs is set by attnlab: use training.max_epochs\n",
    ),
    "nan": ("seed=nan", "seed must be a whole number of at least 0 and below 4294967296, got NaN"),
    "nan inside": (
        "+tracking.tags={a: nan}",
        "tracking.tags.a must be text, a number, true or false, got NaN",
    ),
    "tag": (
        "+tracking.tags.a=null",
        "tracking.tags.a must be text, a number, true or false, got null",
    ),
    "callback": (
        "+callbacks.i=3",
        "callbacks.i must be a Callback (a mapping with _target_), got 3\n",
    ),
    "no callback": (
        "+callbacks.a=null",
        "callbacks.a must be a Callback (a mapping with _target_), got null\n",
    ),
    "no callbacks": (
        "callbacks=null",
        "callbacks must be one of device_stats, early_stopping, lr_monitor, none, or left out for "
        "the default; got null\n",
    ),
    "path for a tracker": (
        "tracking.uri=/tmp/mlruns",
        "tracking.uri must be the address of a server or a database: http(s)://..., "
        "sqlite:///<file>.db, postgresql+psycopg2://..., mysql+pymysql://..., got '/tmp/mlruns'\n",
    ),
    "list for a part": (
        "model.encoder=[]",
        "model.encoder must be a mapping of settings, got a list; write "
        "model.encoder.<setting>=... to change one, or model/encoder=... to choose a file\n",
    ),
    "key that is no text": ("+data={1: a}", "data.1 is not a setting; data has: "),
    "sweep without -m": ("data=dates,copy", "To sweep over it, add --multirun"),
    "preset": ("experiment=foo", "experiment must be one of"),
    "folder": ("hydra.run.dir=/dev/null/x", "/dev/null/x cannot be used: Not a directory"),
    "folder of the system": (
        "paths.runs=/proc/x",
        "/proc/x cannot be used: No such file or directory",
    ),
}


def refused(ended: Ended, *said: str) -> None:
    """It ended with plain sentences on stderr and nothing else there."""
    assert ended.code not in (0, None)
    assert "Traceback" not in ended.err
    assert "Error executing job" not in ended.err
    for sentence in said:
        assert sentence in ended.err
    lines = ended.err.strip().splitlines()
    assert lines
    assert all(line.startswith("error: ") for line in lines)


def left(folder: Path) -> list[str]:
    """The files that are neither Hydra's log nor a lock."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(
        str(path.relative_to(folder))
        for path in files
        if ".hydra" not in path.parts
        and path.suffix not in (".log", ".lock")
        and path.name != "lock"
    )


@pytest.mark.parametrize(("override", "said"), CHOICES.values(), ids=CHOICES)
def test_bad_override_is_refused_in_a_sentence(
    command: Command, folder: Path, override: str | tuple[str, ...], said: str
) -> None:
    overrides = (override,) if isinstance(override, str) else override
    refused(command("train.py", *overrides), said)
    assert left(folder) == []


def test_groups_of_several_choices_are_the_lists_of_the_config() -> None:
    lists = {
        group
        for entry in OmegaConf.load(CONF / "config.yaml").defaults
        if entry != "_self_"
        for group, choice in entry.items()
        if isinstance(choice, ListConfig)
    }
    assert lists == set(SEVERAL_CHOICES) - {"experiment", "debug"}


COMBINATIONS = {
    "dot": (
        ("model/attention=dot", "model.decoder.hidden_size=100"),
        "choose model/projection=linear or",
    ),
    "bridge": (
        ("model/bridge=copy", "model.decoder.hidden_size=100"),
        "choose model/bridge=linear",
    ),
    "none": (
        ("model/attention=none", "model/decoder=attend_then_step"),
        "or model/decoder=no_attention",
    ),
    "coverage penalty": (
        ("model/attention=none", "model/decoder=no_attention", "search.coverage_penalty=0.2"),
        "search.coverage_penalty goes by the attention weights, but the model has no attention",
    ),
    "hard weights of a marginal": (
        ("model/output=hard_attention", "model/normaliser=gumbel"),
        "model.output HardAttention sums over all source tokens that a token may come from, but no",
    ),
    "loss that hard weights do not learn from": (
        ("model/normaliser=hard", "training/attention_loss=guided_alignment"),
        "training.attention_loss GuidedAlignment teaches nothing to weights of which one is always",
    ),
    "validation's coverage penalty": (
        (
            "model/attention=none",
            "model/decoder=no_attention",
            "training.validation_search._target_=attnlab.search.beam.BeamSearch",
            "+training.validation_search.size=2",
            "+training.validation_search.length_penalty=1.0",
            "+training.validation_search.coverage_penalty=0.1",
        ),
        "training.validation_search.coverage_penalty goes by the attention weights",
    ),
    "unknown words": (
        ("model/attention=none", "model/decoder=no_attention", "search.replace_unknown=true"),
        "search.replace_unknown goes by the attention weights",
    ),
    "former coverage": (
        ("model/coverage=see2017",),
        "model/coverage is now model/history: model/coverage=see2017 is model/history=coverage",
    ),
    "former setting of coverage": (
        ("model/history=coverage", "model.coverage.loss_weight=0.5"),
        "model.coverage is now model.history",
    ),
    "history of scores without keys": (
        ("model/history=location_sensitive", "model/attention=location"),
        "model.history: history LocationSensitive is added to the keys, but the location and unifo",
    ),
    "two makers of weights": (
        ("model/history=monotonic", "model/normaliser=entmax"),
        "model.history: history Monotonic makes weights of the scores by itself, so that Entmax w",
    ),
    "two makers of weights in chunks": (
        ("model/history=mocha", "model/normaliser=sparsemax"),
        "model.history: history Mocha makes weights of the scores by itself, so that Sparsemax w",
    ),
    "chunks of a distribution": (
        ("model/history=mocha", "model/decoder=step_then_attend", "model/output=hard_attention"),
        "model.output HardAttention reads the attention weights as a distribution over the source",
    ),
    "chunks without tokens": (
        ("model/history=mocha", "model.history.chunk_size=0"),
        "model.history.chunk_size must be",
    ),
    "filters": (
        ("model/history=location_sensitive", "model.history.filter_width=4"),
        "model.history.filter_width must be odd",
    ),
    "loss without attention": (
        ("model/attention=none", "training/attention_loss=entropy"),
        "training.attention_loss is on attention weights, but the model has no attention; choose",
    ),
    "loss on weights that nothing changes": (
        ("model/attention=uniform", "training/attention_loss=entropy"),
        "training.attention_loss is Entropy, but model.attention is UniformScore, whose weights",
    ),
    "schedule without attention": (
        ("model/attention=none", "training/attention_schedule=late"),
        "training.attention_schedule switches the attention on late, but the model has no "
        "attention; choose training/attention_schedule=always or a model/attention",
    ),
    "schedule that changes nothing": (
        ("model/attention=uniform", "training/attention_schedule=late"),
        "training.attention_schedule.meanwhile is uniform, but model.attention is UniformScore, w",
    ),
    "schedule of alignments": (
        (
            "model/decoder=step_then_attend",
            "model/output=hard_attention",
            "training/attention_schedule=late",
        ),
        "training.attention_schedule changes the context, but the output HardAttention reads each",
    ),
    "nothing to copy from": (
        (
            "model/output=pointer_generator",
            "data.tokenizer.joint=true",
            "training/attention_schedule=late",
            "training.attention_schedule.meanwhile=none",
        ),
        "training.attention_schedule.meanwhile is none, which leaves all attention weights at 0",
    ),
    "attention that stays off": (
        ("training/attention_schedule=late", "training.max_steps=200"),
        "training.attention_schedule.from_step must be below max_steps",
    ),
    "attention by the clock": (
        ("training/attention_schedule=late", "training.max_minutes=3"),
        "training.attention_schedule counts steps, but max_minutes may end the training",
    ),
    "loss without words": (
        ("training/attention_loss=impermissible_mass",),
        "training.attention_loss.tokens",
    ),
    "nothing to copy": (
        ("model/output=pointer_generator",),
        "model.output is PointerGenerator, which copies tokens of the source and needs one joint "
        "vocabulary, but data.tokenizer.joint is false; choose data.tokenizer.joint=true",
    ),
    "smoothing of pointers": (
        (
            "model/output=pointer_network",
            "model/readout=plain",
            "data.tokenizer.joint=true",
            "training.label_smoothing=0.1",
        ),
        "training.label_smoothing spreads probability over the vocabulary, but the output Pointer",
    ),
    "pointers beside a readout": (
        ("model/output=pointer_network", "data.tokenizer.joint=true"),
        "output PointerNetwork reads the attention weights alone, so that the readout",
    ),
    "copies by no distribution": (
        ("model/output=pointer_generator", "data.tokenizer.joint=true", "model/normaliser=sigmoid"),
        "output PointerGenerator reads the attention weights as a distribution over the source",
    ),
    "more numbers than words": (
        ("data=copy", "data.tokenizer.vocabulary_size=8", "data.tokenizer.numbered_unknown=9"),
        "vocabulary_size counts the 4 special tokens and the numbered_unknown, so it must be at "
        "least 14",
    ),
    "two vocabularies": (
        ("model.tied_embeddings=all", "model.readout.size=64"),
        "model.tied_embeddings is all, which needs one joint vocabulary, "
        "but data.tokenizer.joint is false",
    ),
    "config folder": (("-cp", "nowhere"), "Check that the config directory"),
    "extra folder": (("-cd", "nowhere"), "nowhere' not found"),
    "config name": (("-cn", "unknown"), "Cannot find primary config 'unknown'"),
    "sweep": (("-m", "model/attention=foo"), "model/attention must be one of"),
    "later point": (
        ("-m", "seed=1,x"),
        "seed must be a whole number of at least 0 and below 4294967296, got 'x'",
    ),
    "comma in a sweep": (
        ("-m", "data.path=안녕, 세계"),
        "\"data.path='안녕, 세계'\"; or, for a sweep over several values, "
        "\"data.path='안녕','세계'\"\n",
    ),
    "pair in a sweep": (
        ("-m", "model/attention=bahdanau,dot", "model.decoder.hidden_size=100"),
        "choose model/projection=linear or",
    ),
    "cfg": (("--cfg", "job", "model/attention=foo"), "model/attention must be one of"),
}


@pytest.mark.parametrize(("arguments", "said"), COMBINATIONS.values(), ids=COMBINATIONS)
def test_bad_combination_is_refused_in_a_sentence(
    command: Command, folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    refused(command("train.py", *arguments), said)
    assert left(folder) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("path=x", "path is not a setting; did you mean paths? "),
        ("paths.runs=", "paths.runs must be text that is not empty"),
        ("paths.runs=${nowhere}", "paths.runs: Interpolation key 'nowhere' not found"),
        ("tracking=none", "tracking must be one of mlflow; got 'none'"),
    ],
)
def test_deliver_refuses_a_wrong_setting(
    command: Command, folder: Path, text: str, said: str
) -> None:
    refused(command("deliver.py", text), said)
    assert left(folder) == []


@pytest.mark.parametrize("script", ["prepare.py", "evaluate.py", "report.py"])
def test_every_stage_refuses_a_wrong_config(command: Command, folder: Path, script: str) -> None:
    refused(command(script, "chain=1", "seed=1.5"), "chain must be", "seed must be")
    assert left(folder) == []


def test_missing_hardware_is_refused_in_a_sentence(command: Command, folder: Path) -> None:
    import torch

    choice = "mps" if torch.cuda.is_available() else "gpu"
    said = f"hardware.accelerator {choice} is not on this machine; it has: cpu"
    refused(command("train.py", f"hardware={choice}"), said)
    refused(command("evaluate.py", f"hardware={choice}"), said)
    assert left(folder) == []


def rows_of_lengths(*lengths: int) -> str:
    return "".join(json.dumps({"de": "wort " * length, "en": "word"}) + "\n" for length in lengths)


LOCATION = (
    "model/attention=location",
    "model.attention.max_length=6",
    "training.max_steps=1",
    "chain=true",
)
LONGEST = {
    "made here": (
        ("data=copy", "data.num_pairs=200", "data.max_length=5", "data.test_max_length=8"),
        "test",
        9,
    ),
    "of a file": (("data=multi30k", "data.path=corpus"), "validation", 8),
}


@pytest.mark.parametrize(("overrides", "split", "length"), LONGEST.values(), ids=LONGEST)
def test_source_beyond_the_location_scores_rows_is_refused_before_training(
    command: Command, folder: Path, overrides: tuple[str, ...], split: str, length: int
) -> None:
    (folder / "corpus").mkdir()
    for name, longest in (("train", 5), ("validation", 7), ("test", 6)):
        (folder / "corpus" / f"{name}.jsonl").write_text(rows_of_lengths(*range(1, longest + 1)))
    ended = command("train.py", *overrides, *LOCATION)
    refused(
        ended,
        "model.attention.max_length is 6, the tokens (`<eos>` included) of the longest source "
        f"that LocationScore reads, but the {split} split has a source of {length}; "
        f"raise it to {length}\n",
    )
    assert {Path(path).parts[1] for path in left(folder) if path.startswith("runs")} == {"data"}


def test_unknown_hub_dataset_is_refused_quickly(command: Command, folder: Path) -> None:
    refused(
        command("prepare.py", "data=hub", "data.dataset=nobody/nothing"),
        "data.dataset",
        "nobody/nothing",
    )
    assert left(folder) == []


def test_config_file_that_is_not_yaml_is_refused_with_its_name_and_line(
    command: Command, folder: Path
) -> None:
    (folder / "theirs" / "experiment").mkdir(parents=True)
    (folder / "theirs" / "experiment" / "theirs.yaml").write_bytes(b"a: [\n")
    refused(command("train.py", "-cd", "theirs", "experiment=theirs"), "theirs.yaml", "line 2")
    assert left(folder) == ["theirs/experiment/theirs.yaml"]


def test_bug_keeps_its_traceback(
    command: Command, monkeypatch: pytest.MonkeyPatch, tiny: tuple[str, ...]
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a mistake of the program")

    monkeypatch.setattr("attnlab.experiment.preparation.prepare_corpus", broken)
    alone = command("prepare.py", *tiny)
    sweep = command("prepare.py", "-m", "seed=1,2", *tiny)
    for ended in (alone, sweep):
        assert ended.code == 1
        assert "Traceback" in ended.err
        assert "KeyError: 'a mistake of the program'" in ended.err
    assert "job 1 (" in sweep.err


def test_failed_jobs_of_a_sweep_each_print_their_error(command: Command) -> None:
    ended = command("prepare.py", "-m", "data=hub,multi30k", "++data.path=nowhere.json")
    assert ended.code == 1
    assert "Traceback" not in ended.err
    assert ended.err.count("data.path: there is no") == 2
    assert "data=hub): data.path" in ended.err
    assert "data=multi30k): data.path" in ended.err
