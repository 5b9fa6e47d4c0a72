"""Bad command lines: choices, references, paths, pairs of choices, sweeps, and the settings of every other script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bad_case import CLASSIFICATION, TRANSLATION, Case, Expected, labelled_file

ODD_NAMES = {
    "up": "../../up",
    "deep": "a/b/c/../../d",
    "absolute": "/dev/null/x",
    "not writable": "/proc/nowhere",
    "long": "x" * 300,
    "very long": "x/" * 2_100,
    "line end": "a\nb",
    "escape": "\x1b[31mred",
    "bidi": "\u202egnp.x",
    "letters": "é 한국어 🙂",
    "half a character": "\udcff",
    "markup": "<img src=x onerror=pwned()>",
    "shell": "$(touch pwned); touch pwned & `touch pwned`",
    "templates": "{{ 7 * 7 }} %s {0}",
    "quotes": 'a"b',
    "spaces": "  ",
    "dot": ".",
    "tilde": "~nobody_at_all/x",
    "sql": "x' OR '1'='1",
}


def cases() -> Iterator[Case]:
    of_the_stages = (_references, _choices, _logs, _paths, _others_places, _pairs, _sweeps)
    for maker in (*of_the_stages, _params, _settings_files, _studies):
        yield from maker()


def _train(
    kind: str, arguments: tuple[str, ...], expected: Expected, said: tuple[str, ...] = (), **more: object
) -> Case:
    task = CLASSIFICATION if "task=classification" in arguments else TRANSLATION
    name = " ".join(text if len(text) < 90 else text[:90] + "..." for text in arguments)
    kind = f"{kind}; refuses before it writes" if expected == "refused" else kind
    return Case(f"{kind}: {name!r}", kind, "train.py", (*task, *arguments), expected, said, make=labelled_file, **more)  # type: ignore[arg-type]


def _references() -> Iterator[Case]:
    """Interpolations and resolvers: none of them may run anything, nor go round for ever."""
    for text in (
        "${seed}", "${.seed}", "${..seed}", "${nowhere}", "${oc.env:ATTNLAB_ABSENT}", "${oc.env:}", "${oc.env:HOME}",
        "${oc.decode:'[1'}", "${oc.create:{_target_:os.system}}", "${oc.dict.keys:paths}", "${hydra:runtime.cwd}",
        "${hydra.runtime.cwd}", "${eval:1+1}", "${now:%Y}", "${python:os.system('touch pwned')}", "${directions:a,b}",
        "${oc.select:nowhere}", "${oc.deprecated:seed}", "${", "${}", "$${seed}", "${${seed}}",
        "${oc.env:${paths.runs}}",
        "${paths}", "${paths.runs", "${'a'}", "${oc.env:PATH,'a'", "${hydra:}",
    ):  # fmt: skip
        yield _train("reference", (f"seed={text}",), "refused", ("seed",))
    yield _train("reference", ("seed=${data.seed}", "data.seed=${seed}"), "refused", ("seed",))
    yield _train("reference", ("+model.encoder.x=${model}",), "refused", ("model.encoder.x",))
    yield _train("reference", ("paths.runs=${paths.runs}",), "refused", ("paths.runs",))
    yield _train("reference", ("model.encoder=${model}",), "refused", ("model.encoder",))
    yield _train("reference", ("model=${model.encoder}",), "refused", ("model",))
    secret = (("ATTNLAB_SECRET", "12"),)
    for path in ("model.encoder.hidden_size", "padding.encoder"):
        text = (f"{path}=${{oc.decode:${{oc.env:ATTNLAB_SECRET}}}}",)
        yield _train("reference", text, "refused", (path.split(".")[0],), environment=secret)


def _choices() -> Iterator[Case]:
    for text in (
        "data=nonsense", "model/attention=nonsense", "model/attention=../../../x", "model/attention=",
        "model/attention='a b'",
        "model/attention=null", "model/attention=[dot,general]", "model/attention={a:1}", "experiment=nonsense",
        "experiment=../data/copy", "experiment=/etc/passwd", "experiment=[see2017,nonsense]", "nonsense/deep=x",
        "model/nonsense=x", "model//attention=dot", "model/attention/=dot", "/model/attention=dot",
        "~model/attention=dot2",
        "~nonsense", "~nonsense/deep", "+data=copy", "++nonsense=1", "+nonsense.deep=1", "model/attention@x=dot",
        "model/attention@model.encoder=dot", "hydra/launcher=nonsense", "hydra/sweeper=nonsense", "hydra.mode=MULTIRUN",
        "hydra.run.dir=null", "hydra.job.chdir=nonsense", "hydra.run.dir=[a]", "hydra.nonsense=1", "hydra=null",
        "hydra.run=3",
        "hydra.verbose=nonsense", "hydra.output_subdir=../x", "+hydra.callbacks.x=3", "hydra.job.env_set.LD_PRELOAD=x",
        "hydra.searchpath=[file:///etc]", "hydra.searchpath=[pkg://os]", "hydra.job.name=../x", "task=nonsense",
        "task=null",
        "task=3", "task=[translation]", "task={a:1}", "~task", "task=translation task=classification", "=", "==",
        "a==b",
        "=x", "'", '"', "\\", "a=[1", "a={", "a=(1", "a=glob(*)", "seed=glob(*)", "seed=range(1,3)", "seed=choice(1,2)",
        "seed=sort(1,2)", "seed=int(1.5)", "seed=int(x)", "seed=str(1)", "seed=float(1)", "seed=bool(x)",
        "seed=json_str(1)",
        "seed=interval(1,2)", "seed=tag(a,interval(1,2))", "seed=nonsense(1)", "seed=1;2", "seed=0x1F",
        "seed=1_000_000_000_000",
        "seed=٣", "seed=１",
        "seed=1e3", "seed=-0", "seed=+1", "seed=--1", "seed= ", "seed=#", "seed=&x", "seed=!!int 3",
        "\udcff=1", "é=1", "\x1b[31m=1", "\u202eseed=1", "seed=\x1b[31m", "seed=\u202e1", "seed=" + "9" * 5_000,
        "seed=[" + "[" * 300 + "]" * 300 + "]", "x" * 3_000 + "=1", ".".join(["a"] * 800) + "=1",
        "seed={" + "a:{" * 100 + "b:1" + "}" * 100 + "}", "sweep.objectives=[foo]", "learning_rate=1",
    ):  # fmt: skip
        expected: Expected = "refused"
        if text in WORKING_CHOICES:
            expected = "either"
        yield _train("choice", (text,), expected)
    for options in (
        ("--nonsense",), ("-x",), ("-cn",), ("-cn", "nonsense"), ("-cn", "../config"), ("-cn", "/etc/passwd"), ("-cn",
        ""),
        ("-cp", "nowhere"), ("-cp", "/etc"), ("-cp", ""), ("-cd", "nowhere"), ("-cd", "/dev/null"), ("--package", "x"),
        ("--info", "nonsense"), ("--cfg", "nonsense"), ("-p",), ("--resolve",), ("--experimental-rerun", "x"),
        ("--run", "-m"),
        ("--shell-completion",), ("--", "x"), ("-m", "-c", "job"),
    ):  # fmt: skip
        yield _train("option", options, "either" if options[0] in ("-m", "--run", "--package") else "refused")


def _logs() -> Iterator[Case]:
    """What `logging.config` would stumble over."""
    for node in ("job_logging", "hydra_logging"):
        for text in (
            "root.level=LOUD", "root.handlers=[nope]", "root.handlers=nope", "version=2", "version=null",
            "handlers=null", "handlers.console=null", "handlers.console.level=3.5", "handlers.console.formatter=nope",
            "formatters.simple.style='{'", "formatters.simple.format=x", "handlers.console.when=X",
            "handlers.console.class=logging.handlers.TimedRotatingFileHandler", "handlers.console.mode=w",
            "handlers.console.filters=[nope]", "loggers=null", "loggers.x.level=LOUD", "loggers.x.handlers=[nope]",
        ):  # fmt: skip
            key = f"hydra.{node}.{text}"
            yield _train("log settings", (f"++{key}",), "either" if text in FOUND_LATE else "refused", ("logging",))
        yield _train("log settings", (f"~hydra.{node}.root",), "refused", (f"hydra.{node}.root",))
    for text in ("3", "null", "{}", "[1]", "[a,2]"):
        yield _train("log settings", (f"hydra.verbose={text}",), "refused", ("hydra.verbose",))


# By `logging` itself, once the run has a folder.
FOUND_LATE = {
    "handlers.console=null", "handlers.console.class=logging.handlers.TimedRotatingFileHandler",
    "handlers.console.mode=w", "loggers=null",
}  # fmt: skip

WORKING_CHOICES = {
    "experiment=[see2017,nonsense]", "hydra.mode=MULTIRUN", "hydra.job.chdir=nonsense", "hydra.verbose=nonsense",
    "hydra.output_subdir=../x", "hydra.job.env_set.LD_PRELOAD=x", "hydra.job.name=../x", "seed=-0", "seed=+1",
    "seed=1e3",
    "seed=0x1F", "seed=int(1.5)", "seed=1_000_000_000_000", "seed=٣", "seed=１", "+data=copy",
    "hydra.searchpath=[pkg://os]",
    "hydra.searchpath=[file:///etc]", "hydra.run.dir=null", "~task", "seed=bool(x)", "++nonsense=1", "seed=float(1)",
    "model/attention@model.encoder=dot", "a=glob(*)", "task=[translation]",
}  # fmt: skip


def _somebody_elses_folder(folder: Path) -> None:
    labelled_file(folder)
    (folder / "thesis").mkdir()
    (folder / "thesis" / "chapter.txt").write_text("years of work\n")


def _others_places() -> Iterator[Case]:
    """A folder that a stage is told to write, and that holds what no stage wrote."""
    for task in (TRANSLATION, CLASSIFICATION):
        for script, keys in (("prepare.py", ["data"]), ("train.py", ["data", "model", "training"])):
            for key in keys:
                for value, there in (("thesis", "thesis"), (".", ""), ("thesis/chapter.txt", "chapter.txt")):
                    yield Case(
                        f"{script} {task[0]} paths.{key}={value}",
                        "the place of something else; refuses before it writes",
                        script,
                        (*task, f"paths.{key}={value}"),
                        "refused",
                        (f"paths.{key}", there),
                        make=_somebody_elses_folder,
                    )


def _paths() -> Iterator[Case]:
    """Odd names for every place that is written to or read from."""
    for name, text in ODD_NAMES.items():
        quoted = "'" + text.replace("'", "\\'") + "'"
        for key in ("paths.runs", "hydra.run.dir"):
            yield _train(f"path, {key}", (f"{key}={quoted}",), "either")
        for key in ("paths.data", "paths.model", "paths.training"):
            yield _train(f"path, {key}", (f"{key}={quoted}", "training.max_steps=1"), "either")
        for key in ("tracking.experiment", "tracking.run_name", "tracking.uri"):
            yield _train(
                f"name, {key}", ("tracking=mlflow", "tracking.system_metrics=false", f"{key}={quoted}"), "either"
            )
        yield Case(
            f"evaluate, paths.model, {name}",
            "path to read",
            "evaluate.py",
            (*TRANSLATION, f"paths.model={quoted}", "paths.data=nowhere"),
            "refused",
        )
        yield Case(
            f"report, paths.data, {name}",
            "path to read",
            "report.py",
            (*TRANSLATION, f"paths.data={quoted}", "paths.training=x", "paths.evaluation=x"),
            "refused",
        )
    for script in ("evaluate.py", "report.py"):
        yield Case(f"{script} without paths", "path to read", script, TRANSLATION, "refused", ("paths.data",))


def _pairs() -> Iterator[Case]:
    """Choices that are right each by itself."""
    pairs: dict[tuple[str, ...], Expected] = {
        ("model/attention=dot", "model.decoder.hidden_size=6"): "refused",
        ("model/attention=none",): "either",
        ("model/attention=none", "~model.attention.size", "model/decoder=attend_then_step"): "either",
        ("model/decoder=no_attention",): "refused",
        ("model.encoder.bidirectional=false", "model.encoder.merge=sum"): "refused",
        ("model.encoder.bidirectional=false", "model.encoder.merge=mean"): "refused",
        ("model/bridge=first_backward", "model.encoder.bidirectional=false"): "refused",
        ("model/bridge=copy", "model.decoder.hidden_size=6"): "refused",
        ("model/bridge=copy", "model.decoder.layers=2"): "refused",
        ("model.tied_embeddings=all",): "refused",
        ("model.tied_embeddings=target", "model.readout.size=3"): "refused",
        ("training.max_steps=null",): "refused",
        ("training.max_steps=null", "training.max_epochs=null"): "refused",
        ("training.keep_best=1", "training.average_checkpoints=2"): "refused",
        ("search.n_best=9",): "refused",
        ("search.min_length=6", "search.max_length=6"): "refused",
        ("search.min_length=7",): "refused",
        ("data.min_length=6",): "refused",
        ("data.validation_fraction=0.6", "data.test_fraction=0.6"): "refused",
        ("data.num_pairs=3", "data.validation_fraction=0.01"): "refused",
        ("data.num_symbols=2", "data.max_length=3", "data.num_pairs=100000"): "refused",
        ("hardware.devices=2",): "refused",
        ("hardware.nodes=2",): "refused",
        ("hardware.accelerator=mps",): "refused",
        ("hardware.precision=16",): "refused",
        ("hardware.threads=4096",): "refused",
        ("hardware.workers=100000",): "refused",
        ("hardware.bucket_pool=0",): "refused",
        ("hardware.strategy=ddp_fork", "hardware.accelerator=gpu"): "refused",
        ("task=classification", "search=beam"): "refused",
        ("task=classification", "data=copy"): "refused",
        ("task=classification", "model=seq2seq"): "refused",
        ("task=classification", "training=standard"): "refused",
        ("task=classification", "model/decoder=step_then_attend"): "refused",
        ("task=classification", "training/teacher_forcing=linear"): "refused",
        ("task=classification", "paths.ensemble=[x]"): "refused",
        ("task=classification", "training.monitor=bleu"): "refused",
        ("task=classification", "training.validation_search.max_length=3"): "refused",
        ("task=classification", "experiment=bahdanau2015"): "refused",
        ("task=classification", "model/attention=none"): "refused",
        ("task=classification", "model/scope=local_m"): "refused",
        ("task=classification", "data.tokenizer.joint=true"): "refused",
        ("data=labelled",): "refused",
        ("model=classifier",): "refused",
        ("training=classification",): "refused",
        ("search=none",): "refused",
        ("training.monitor=accuracy",): "refused",
        ("paths.ensemble=[nowhere]", "search.replace_unknown=true"): "either",
        ("sweep=optuna", "sweep.objectives=[foo]"): "refused",
        ("sweep=optuna", "sweep.objectives=[quality,quality]"): "refused",
        ("sweep=optuna", "sweep.objectives=[]"): "refused",
        ("sweep=optuna", "sweep.objectives=quality"): "refused",
        ("sweep=optuna", "sweep.objectives=null"): "refused",
        ("sweep=optuna", "sweep.trials=0"): "refused",
        ("sweep=optuna", "training.monitor=nonsense"): "refused",
        ("launcher=slurm", "launcher.minutes=0"): "refused",
        ("launcher=joblib", "launcher.workers=0"): "refused",
        ("data=dates", "data.source_locales=[xx_YY]"): "refused",
        ("data=dates", "data.source_locales=[]"): "refused",
        ("data=dates", "data.source_locales=[de_DE,de_DE]"): "refused",
        ("data=dates", "data.source_locales=[../../x]"): "refused",
        ("data=dates", "data.target_locale=de_DE"): "refused",
        ("data=dates", "data.formats=[nonsense]"): "refused",
        ("data=dates", "data.first_year=2000", "data.last_year=1999"): "refused",
        ("data=dates", "data.first_year=2000", "data.last_year=2000", "data.num_pairs=900000"): "refused",
        ("data/tokenizer=unigram", "data.tokenizer.vocabulary_size=5"): "either",
        ("data/tokenizer=bpe", "data.tokenizer.vocabulary_size=5"): "either",
        ("data.tokenizer.min_frequency=100000",): "either",
    }  # fmt: skip
    for overrides, expected in pairs.items():
        needless = () if "data=dates" not in overrides else ("~data.max_length",)
        if needless:
            kept = tuple(text for text in TRANSLATION if not text.startswith("data"))
            yield Case(
                f"pair: {' '.join(overrides)}", "pair", "train.py", (*kept, "data.num_pairs=60", *overrides), expected
            )
        else:
            yield _train("pair", overrides, expected, problems=MANY_PROBLEMS.get(overrides, 3))


# Every setting that only the other task has is told, too.
MANY_PROBLEMS = {("task=classification", "data=copy"): 5, ("model=classifier",): 4}


def _sweeps() -> Iterator[Case]:
    for overrides in (
        ("seed=1,x",), ("seed=",), ("seed=1,1",), ("seed=1,2", "model/attention=dot,nonsense"), ("seed=range(1,3",),
        ("seed=range(0)",), ("seed=interval(1,2)",), ("seed=glob(*)",), ("model/attention=glob(x*)",),
        ("nonsense=1,2",),
        ("sweep=nonsense",), ("sweep=optuna", "seed=glob(*)"), ("sweep=optuna", "seed=interval(3,1)"),
        ("sweep=optuna", "training.optimizer.learning_rate=tag(log,interval(0,1))"), ("sweep=optuna",
        "sweep.trials=-1"),
        ("sweep=optuna", "sweep.objectives=[foo]"), ("launcher=nonsense",), ("launcher=slurm",),
        ("launcher.workers=3",),
        ("launcher=joblib", "launcher.workers=100000"), ("sweep=1,2",), ("paths.runs=a,b",), ("tracking=none,mlflow",),
        ("hydra.sweep.dir=/dev/null/x",), ("hydra.sweep.subdir=../x",), ("hydra.sweeper.n_trials=3",),
        ("launcher=serial,joblib",),
        ("hydra.sweeper.params={seed:x}",), ("+hydra.sweeper.params.nonsense=1,2",), ("seed=1,2", "hardware.devices=2"),
    ):  # fmt: skip
        expected: Expected = "either" if overrides[0] in ("paths.runs=a,b", "hydra.sweep.subdir=../x") else "refused"
        yield _train("sweep", ("-m", "training.max_steps=1", *overrides), expected, problems=9)


def _params() -> Iterator[Case]:
    """params.yaml, which `dvc repro` composes."""
    given: dict[str, bytes] = {
        "empty": b"", "a word": b"nonsense", "a list": b"[1, 2]", "a number": b"3", "no YAML": b"seed: [1",
        "tabs": b"seed:\t1\n\tx: 2",
        "utf-16": "seed: 1".encode("utf-16"), "latin-1": b"data: \xe9", "nul": b"seed: \0",
        "overrides of numbers": b"overrides: [1]",
        "overrides of mappings": b"overrides: [{a: 1}]", "a text for overrides": b"overrides: seed=1",
        "unknown choice": b"model/attention: x",
        "unknown key": b"nonsense: 1", "wrong type": b"seed: x", "a date": b"seed: 2020-01-01",
        "sexagesimal": b"seed: 1:30",
        "a set": b"seed: !!set {a}", "an object": b"seed: !!python/object/apply:os.system ['touch pwned']",
        "an anchor": b"a: &a [*a]",
        "many anchors": b"a: &a [x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c]\nseed: *d",
        "the same key twice": b"seed: 1\nseed: 2",
        "a merge": b"<<: {seed: x}", "several documents": b"seed: 1\n---\nseed: 2", "a key of numbers": b"1: 2",
        "a key of nothing": b"null: 2",
        "a key of a list": b"? [a, b]\n: 1", "control characters": b"paths: {runs: \"\\u0007\\e[31m\"}\nseed: x",
        "a bidi": "seed: \u202ex".encode(),
        "nul in a path": b'paths: {runs: "a\\0b"}\nseed: x', "half a character": b'seed: "\\ud800"',
        "a binary": b"seed: !!binary aGVsbG8=", "deep": b"seed: " + b"[" * 500 + b"]" * 500,
        "a reference": b"seed: ${nowhere}", "a target": b"settings: {data: {_target_: os.system}}",
        "a huge number": b"seed: " + b"9" * 4000, "a quote": b"paths: {runs: \"it's\"}\nseed: x",
        "not a number": b"seed: .nan", "infinite": b"training: {max_steps: .inf}",
        "an override of paths": b"paths: {runs: [a]}", "yes": b"chain: yes", "on": b"rerun: on",
        "octal": b"seed: 0o17", "a mark": b"\xef\xbb\xbfseed: x", "carriage returns": b"seed: x\r\n",
        "dots": b"training.max_steps: 60", "dots and nested": b"training.max_steps: 1\ntraining: {max_steps: 2}",
        "settings for a choice": b"data: {num_pairs: 3}", "settings of text": b"settings: x",
        "a sweep": b"seed: 1,2", "a preset": b"experiment: nonsense",
    }  # fmt: skip
    for name, content in given.items():

        def make(folder: Path, content: bytes = content) -> None:
            (folder / "params.yaml").write_bytes(content)

        yield Case(
            f"params.yaml: {name}", "params.yaml", "compose.py", (), "either", ("params.yaml",), make=make, problems=5
        )
    for into in ("../x", "/tmp/x", "", ".", "a/../../b", "x" * 300, "/dev/null/x", "é🙂", "a\nb", "\udcff"):
        yield Case(
            f"compose into {into[:20]!r}",
            "compose's folder",
            "compose.py",
            (f"into={into}",),
            "either",
            make=_good_params,
        )
    for arguments in (("--nonsense",), ("seed",), ("into=a", "into=b"), ("seed=x",)):
        yield Case(f"compose {arguments}", "compose's arguments", "compose.py", arguments, "refused", make=_good_params)
    yield Case("show without a build", "show", "show.py", (), "refused")


def _good_params(folder: Path) -> None:
    (folder / "params.yaml").write_text("seed: 1\n")


def _settings_files() -> Iterator[Case]:
    """compare.py, register.py and way_back.py, which compose no experiment."""
    common = (
        "nonsense=1", "nonsense", "=", "tracking=nonsense", "tracking=none", "tracking.uri=3", "tracking.nonsense=1",
        "tracking=[", "tracking._target_=os.system", "paths.runs=", "paths.runs=null", "paths.runs=[a]",
        "paths.nonsense=x",
        "paths=3", "--nonsense", "tracking.uri=http://127.0.0.1:9", "tracking.uri=nonsense://x",
        "tracking.uri=sqlite:///nowhere/x.db",
        "tracking.experiment=", "tracking.experiment=nonsense", "tracking.uri=postgresql://x",
        "tracking.uri=file:///tmp/x",
        "paths.runs=/dev/null/x", "tracking.x.y=1", "tracking.uri.x=1", "a.b.c=1", "..=1", "a..b=1", "[0]=1",
        "paths[0]=x",
        "paths.runs=${nowhere}", "paths.runs=${oc.env:ATTNLAB_ABSENT}", "\udcff=1", "paths.runs='\udcff'",
        "tracking.uri=\x1b[31m", "paths.runs=${", "[=1", "paths.runs=!!int foo", "paths.runs=" + "[" * 3_000,
    )  # fmt: skip
    given = {
        "compare.py": ("sweep=last", "sweep=", "sweep=../..", "sweep=*", "runs=[]", "runs=[x]", "runs=x",
        "runs=[../x]", "runs={a:1}", "filter=", "filter=nonsense",
                       "filter=a' OR 1=1 --", "builds=[]", "builds=[nowhere]", "builds=nowhere", "builds=[/etc]",
                       "builds=[.]", "builds=[a,a]", "metric=nonsense", "samples=0",
                       "samples=1e3", "samples=x", "confidence=1", "confidence=nan", "confidence=0.1", "seed=-1",
                       "sentences=-1", "sentences=x", "into=", "sweep=last runs=[a]"),
        "register.py": ("sweep=last", "sweep=", "sweep=../..", "run=", "run=nonsense", "run=../x", "name=",
        "name=a/b", "name=a:b", "name=" + "x" * 300, "name=a'b", "alias=",
                        "alias=latest", "alias=v1", "alias=3", "alias=a b", "alias=é", "run=a' OR 1=1", "run=%s",
                        "run=\x1b[31m"),
        "way_back.py": ("run=", "run=nonsense", "run=../../x", "run=/etc/passwd", "run=null", "run=[a]",
        "run=a' OR 1=1", "run=" + "x" * 300, "run=\x1b[31m", "run=é🙂", "run=\udcff"),
    }  # fmt: skip
    usual = {"compare.py": "sweep=last", "register.py": "run=nonsense", "way_back.py": "run=nonsense"}
    for script, own in given.items():
        kind = f"settings of {script}; refuses before it writes"
        for text in own:
            yield Case(
                f"{script} {text[:60]!r}",
                kind,
                script,
                tuple(text.split(" ")) if " runs=" in text else (text,),
                "refused",
                problems=2,
            )
        for text in common:
            yield Case(
                f"{script} {usual[script]} {text[:60]!r}", kind, script, (usual[script], text), "refused", problems=2
            )
        yield Case(f"{script} without anything", kind, script, (), "refused")


def _studies() -> Iterator[Case]:
    for script in ("studies/length_curve.py", "studies/vanishing_gradients.py", "studies/alignments.py"):
        for arguments in (
            ("--nonsense",), ("--seeds", ""), ("--seeds", "x"), ("--seeds", "1,1"), ("--seeds", "-1"), ("--seeds",
            "1.5"), ("--seeds", "9" * 30), ("--into",),
            ("seed=3",), ("nonsense=1",), ("data=hub",), ("model/attention=nonsense",), ("training.nonsense=1",),
            ("seed",),
            ("--steps", "0"), ("--steps", "x"), ("--steps", "-3"), ("hardware.threads=4096",),
            ("model.encoder.hidden_size=x",), ("task=classification",),
        ):  # fmt: skip
            kind = "studies; refuses before it writes"
            yield Case(f"{script} {arguments}", kind, script, arguments, "refused", problems=4)
