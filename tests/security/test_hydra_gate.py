"""Hydra's own node is checked before Hydra builds anything of it, imports anything for it, or sets anything up."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest
from entry_points import ROOT, Command
from hostile import assert_nothing_ran
from hydra.types import RunMode

from attnlab.errors import ExperimentError
from attnlab.experiment import launch
from attnlab.experiment.composed import CONF, ConfigSource
from attnlab.experiment.hydra_node import SWEEP_MODE
from attnlab.experiment.sweep_plan import SweepPlan

# A way of git to run a command wherever it looks at a checkout.
GIT = "{GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: core.fsmonitor, GIT_CONFIG_VALUE_0: mkdir MARK}"
FACTORY = "{(): os.mkdir, path: MARK}"
# What hydra: of somebody's experiment=theirs says, and what is told of it.
NODES = {
    "launcher": ("launcher: {_target_: os.mkdir}", "hydra.launcher._target_ must be a class of"),
    "launcher's part": ("launcher: {x: {_target_: os.mkdir, path: MARK}}", "Key 'x' not in 'BasicLauncherConf'"),
    "sweeper": ("sweeper: {_target_: subprocess.run}", "hydra.sweeper._target_ must be a class of"),
    "callback": ("callbacks: {x: {_target_: os.mkdir, path: MARK}}", "hydra.callbacks.x._target_ must not be set"),
    "partial callback": (
        "callbacks: {x: {_target_: functools.partial, _partial_: true, _args_: [os.mkdir, MARK]}}",
        "hydra.callbacks.x._target_ must not be set",
    ),
    "callback of Hydra's": (
        "callbacks: {x: {_target_: hydra.experimental.callbacks.PickleJobInfoCallback}}", "must not be set",
    ),
    "log handler": (f"job_logging: {{handlers: {{x: {FACTORY}}}}}", "hydra.job_logging.handlers.x.() must be one of"),
    "log filter": (f"job_logging: {{filters: {{x: {FACTORY}}}}}", "hydra.job_logging.filters.x.() must be one of"),
    "formatter": (f"hydra_logging: {{formatters: {{x: {FACTORY}}}}}", "hydra_logging.formatters.x.() must be one of"),
    "handler as a formatter": (
        "job_logging: {formatters: {simple: {class: logging.FileHandler, format: '%(message)s/../../../MARK', "
        "datefmt: w}}}", "hydra.job_logging.formatters.simple.class must be one of colorlog.ColoredFormatter, logging.",
    ),
    "handler as a filter": (
        "job_logging: {filters: {x: {(): logging.FileHandler, name: MARK}}}",
        "hydra.job_logging.filters.x.() must be one of logging.Filter; got",
    ),
    "log file": (
        "job_logging: {handlers: {file: {filename: MARK}}}", "must be ${hydra.runtime.output_dir}/<name>.log; got",
    ),
    "log file's own name": (
        "job_logging: {handlers: {file: {filename: '${hydra.runtime.output_dir}/.bashrc'}}}", "filename must be",
    ),
    # Hydra's own log begins before a run has its folder, which a config could name instead.
    "Hydra's own log file": (
        "runtime: {output_dir: MARK}\n  hydra_logging: {handlers: {f: {class: logging.FileHandler, mode: w, "
        "filename: '${hydra.runtime.output_dir}/x.log'}}, root: {handlers: [f]}}",
        "hydra.hydra_logging.handlers.f.filename must not be set",
    ),
    "folder of a run": ("runtime: {output_dir: MARK}", "hydra.runtime.output_dir is told by Hydra"),
    "style of a formatter": (
        "job_logging: {formatters: {simple: {style: '{', format: '{args[0].__class__}'}}}",
        "simple.style must be %; got",
    ),
    # It sets any attribute of what is made: the file that is written to, once the one that is named was checked.
    "attribute of a log handler": (
        "job_logging: {handlers: {file: {class: logging.FileHandler, formatter: simple, delay: true, "
        "filename: '${hydra.runtime.output_dir}/x.log', '.': {baseFilename: MARK}}}}",
        "hydra.job_logging.handlers.file...baseFilename must not be set",
    ),
    "attribute of a formatter": (
        "hydra_logging: {formatters: {simple: {'.': {_fmt: MARK}}}}", "formatters.simple..._fmt must not be set",
    ),
    "key with dots": ("job_logging: {handlers: {'x.mode': MARK}}", "handlers.x.mode must not be set"),
    "section of its own": ("job_logging: {incremental: true}", "hydra.job_logging.incremental must not be set"),
    "reference within logging": ("job_logging: {handlers: {x: {mode: 'cfg://root'}}}", "mode must be one of ext://"),
    "job's name": ("job: {name: ../../x}", "hydra.job.name must be a plain name"),
    "environment": (f"job: {{env_set: {GIT}}}", "hydra.job.env_set.GIT_CONFIG_COUNT must not be set"),
    "environment by reference": ("job: {env_set: '${data}'}", "hydra.job.env_set must not be set"),
    # Chosen by the clock: harmless when it is looked at, and something else a moment later.
    "by the clock": ("job_logging: {handlers: {x: '${theirs.${now:%f}}'}}", "x must be written out, without ${...}"),
    # Only known when the job runs.
    "by the job": ("job_logging: {handlers: {x: '${theirs.${hydra.job.num}}'}}", "must be written out"),
    "by the environment": ("job_logging: {handlers: {x: {(): '${oc.env:HOME}'}}}", "must be written out"),
    "whole logging": ("job_logging: '${model.encoder}'", "hydra.job_logging must be written out"),
    "whole launcher": ("launcher: '${model.encoder}'", "str is not a subclass of BasicLauncherConf"),
    "a sweep by itself": (
        f"mode: MULTIRUN\n  sweeper: {{params: {{+hydra.job_logging.handlers.x: '{FACTORY}'}}}}",
        "hydra.mode is MULTIRUN in a config file",
    ),
    "by the job's name": (
        "mode: '${hydra.runtime.choices.${hydra.job.name}}'\n  runtime: {choices: {check: RUN, train: MULTIRUN}}",
        "hydra.mode must be written out",
    ),
    "working folder": ("job: {chdir: true}", "hydra.job.chdir must stay false"),
    "folder of Hydra's files": ("output_subdir: ../../x", "hydra.output_subdir must be .hydra, or a plain"),
    "somebody's folder": ("run: {dir: .}\n  output_subdir: conf", "must be .hydra, or a plain name that begins so"),
    "some program's folder": ("run: {dir: .}\n  output_subdir: .git", "must be .hydra, or a plain name"),
    "lines in a log": (
        'job_logging: {formatters: {simple: {format: "%(message)s\\nimport os"}}}', "simple.format must be on one line",
    ),
    "a terminal's commands": ('help: {header: "\\e]0;x\\a"}', "hydra.help.header must be plain text"),
}  # fmt: skip


def write_theirs(folder: Path, text: str, mark: Path) -> None:
    place = folder / "theirs" / "experiment"
    place.mkdir(parents=True)
    (place / "theirs.yaml").write_text(f"# @package _global_\n{text.replace('MARK', str(mark))}\n")


@pytest.mark.parametrize(("node", "said"), NODES.values(), ids=NODES)
def test_a_hostile_hydra_node_is_refused(command: Command, folder: Path, mark: Path, node: str, said: str) -> None:
    write_theirs(folder, f"hydra:\n  {node}", mark)
    assert_nothing_ran(command("train.py", "-cd", "theirs", "experiment=theirs"), mark, said)
    assert not (folder / "runs").exists()


# As the package hydra_colorlog has it, which need not be installed.
COLOURED = """hydra: {job_logging: {
  formatters: {colorlog: {(): colorlog.ColoredFormatter, format: "%(message)s", log_colors: {DEBUG: purple}}},
  handlers: {
    console: {class: logging.StreamHandler, formatter: colorlog, stream: "ext://sys.stdout"},
    file: {class: logging.FileHandler, filename: "${hydra.runtime.output_dir}/${hydra.job.name}.log", mode: w}},
  root: {level: INFO, handlers: [console, file]}, loggers: {some.one: {level: DEBUG, handlers: [file]}},
  disable_existing_loggers: false}}"""


def test_log_settings_of_hydra_pass(folder: Path, mark: Path) -> None:
    write_theirs(folder, COLOURED, mark)
    root = "hydra.job_logging.root"  # conf/ sends it to the file, which not every choice has
    choices = [
        ["hydra/job_logging=default"],
        ["hydra/job_logging=disabled", f"{root}.handlers=[]"],
        ["hydra/job_logging=none", f"{root}=null"],
        ["hydra/job_logging=stdout", f"{root}.handlers=[console]"],
        *[[f"hydra/hydra_logging={name}"] for name in ("default", "disabled", "none")],
        ["experiment=theirs"],
    ]
    for chosen in choices:
        with ConfigSource(CONF, "config", folder / "theirs") as source:
            source.check_composition(chosen)


WRONG_LOGS = {
    "hydra.job_logging.root.level=LOUD": "hydra.job_logging.root.level must be one of DEBUG, INFO,",
    "hydra.job_logging.root.handlers=[nope]": "root.handlers.0 must name a handler that there is: console, file; got",
    "hydra.job_logging.root.handlers=file": "root.handlers must be a list of names, as [file]; got 'file'",
    "hydra.job_logging.handlers.file.formatter=nope": "must name a formatter that there is: simple; got 'nope'",
    "hydra.job_logging.formatters.simple.format=x": "must have a field, such as %(message)s; got 'x'",
    "hydra.hydra_logging.version=2": "hydra.hydra_logging.version must be 1; got 2",
    "+hydra.job_logging.handlers.file.when=X": "hydra.job_logging.handlers.file.when must be one of S, M, H, D,",
    "hydra.job_logging.handlers=null": "must name a handler that there is: none; got",
    "~hydra.job_logging.root": "hydra.job_logging.root must be there",
    "hydra.verbose=3": "hydra.verbose must be true, false, the name of a logger or a list of names; got 3",
}


@pytest.mark.parametrize(("override", "said"), WRONG_LOGS.items())
def test_log_settings_without_a_meaning_are_told(override: str, said: str) -> None:
    with ConfigSource(CONF, "config") as source, pytest.raises(ExperimentError) as told:
        source.check_composition([override])
    assert [said in problem for problem in told.value.problems] == [True], told.value.problems


@pytest.mark.parametrize("more", ["maxBytes=3", "mode=r", "encoding=nonsense"])
def test_what_only_logging_finds_is_a_sentence(command: Command, mark: Path, tiny: tuple[str, ...], more: str) -> None:
    said = "hydra.job_logging or hydra.hydra_logging cannot be used: Unable to configure handler 'file': "
    assert_nothing_ran(command("prepare.py", f"+hydra.job_logging.handlers.file.{more}", *tiny), mark, said)


@pytest.mark.parametrize("option", ["--help", "--cfg=job", "--info=config", "--hydra-help", "-m"])
def test_nor_does_it_run_where_one_only_asks(command: Command, folder: Path, mark: Path, option: str) -> None:
    write_theirs(folder, f"hydra:\n  hydra_logging: {{handlers: {{x: {FACTORY}}}}}", mark)
    assert_nothing_ran(
        command("train.py", "-cd", "theirs", option, "experiment=theirs"), mark, "handlers.x.() must be one of"
    )


EVIL = f"hydra: {{job_logging: {{handlers: {{x: {FACTORY}}}}}}}"
BY_TWO = "defaults: [/aa: a0, /bb: b0, {'optional /evil': '${aa}_${bb}'}]\n"
# What experiment=theirs says, the file of a group beside it that is evil, and what is told.
SWEEPS = {
    "the older search space": (
        "defaults: [override /sweep: optuna]\nhydra:\n  sweeper:\n    search_space: {+hydra.job_logging.handlers.x: "
        "{type: categorical, choices: ['{\\(\\):os.mkdir,path:MARK}']}}",
        None,
        "must not be set, for hydra.sweeper.search_space",
    ),
    # Harmless in each point, for those do without it.
    "what starts the sweep": (
        "defaults: [/evil: sweep]\nhydra: {sweeper: {params: {evil: 'none'}}}",
        ("sweep", "hydra: {callbacks: {x: {_target_: os.mkdir, path: MARK}}}"),
        "hydra.callbacks.x._target_ must not be set",
    ),
    "two choices together": (
        f"{BY_TWO}hydra: {{sweeper: {{params: {{aa: 'a0,a1', bb: 'b0,b1'}}}}}}", ("a1_b1", EVIL),
        "handlers.x.() must be one of",
    ),
    "a node among the choices": (
        "hydra: {runtime: {choices: {evil: {env_set: {PATH: MARK}}}}}", None,
        "hydra.runtime.choices.evil.env_set.PATH must not be set",
    ),
    "overrides of its own": (
        "hydra: {overrides: {hydra: ['+hydra.callbacks.x={_target_:os.mkdir,path:MARK}']}}", None,
        "hydra.overrides is where Hydra notes",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("theirs", "beside", "said"), SWEEPS.values(), ids=SWEEPS)
def test_no_sweep_of_a_config_runs_code(
    command: Command,
    folder: Path,
    mark: Path,
    tiny: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    theirs: str,
    beside: tuple[str, str] | None,
    said: str,
) -> None:
    monkeypatch.setattr("composed.LARGEST_CHECKED_GRID", 1)
    write_theirs(folder, theirs, mark)
    write_choices(folder / "theirs", beside, mark)
    ended = command("train.py", "-m", "-cd", "theirs", "experiment=theirs", *tiny)
    assert not mark.exists()
    assert ended.code == 1
    assert said in ended.err, ended.err
    assert "Traceback" not in ended.err


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Gives the variable LATER a value when all was looked at, and Hydra has not begun."""

    def give(value: str) -> None:
        look = launch._check_before_start

        def look_and_give(arguments: Namespace) -> SweepPlan | None:
            plan = look(arguments)
            monkeypatch.setenv("LATER", value)
            return plan

        monkeypatch.setattr(launch, "_check_before_start", look_and_give)

    return give


def test_nor_does_a_file_start_a_sweep_later(
    command: Command, folder: Path, mark: Path, tiny: tuple[str, ...], later: Callable[[str], None]
) -> None:
    """Nor does it note an override that nobody gave."""
    write_theirs(folder, "defaults: [{'optional /evil': '${oc.env:LATER,none}'}]", mark)
    sweep = "hydra: {mode: MULTIRUN, overrides: {hydra: ['hydra.mode=MULTIRUN']}, sweeper: {params: {seed: '1,2'}}}"
    write_choices(folder / "theirs", ("later", sweep), mark)
    later("later")
    ended = command("train.py", "-cd", "theirs", "experiment=theirs", "chain=false", *tiny)
    assert "error: hydra.overrides is where Hydra notes the command's overrides" in ended.err, ended.err
    assert not (folder / "runs" / "sweeps").exists()


@pytest.mark.parametrize("mode", [(), ("-m",), ("-m", "seed=1,2"), ("--help",), ("--cfg=job",)], ids=" ".join)
def test_what_is_composed_otherwise_after_the_look_is_looked_at_too(
    command: Command, folder: Path, mark: Path, tiny: tuple[str, ...], later: Callable[[str], None], mode: tuple[str]
) -> None:
    """A default may be chosen by the clock or the environment, and its file be written meanwhile."""
    write_theirs(folder, "defaults: [{'optional /evil': '${oc.env:LATER,none}'}]", mark)
    write_choices(folder / "theirs", ("later", "hydra: {callbacks: {x: {_target_: os.mkdir, path: MARK}}}"), mark)
    later("later")
    ended = command("train.py", "-cd", "theirs", *mode, "experiment=theirs", "chain=false", *tiny)
    assert not mark.exists()
    assert ended.code == 1
    assert "error: hydra.callbacks.x._target_ must not be set" in ended.err, ended.err
    assert "Traceback" not in ended.err


def test_nor_is_a_package_imported_that_is_named_later(
    command: Command,
    folder: Path,
    mark: Path,
    tiny: tuple[str, ...],
    later: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder / "attnlab_theirs").mkdir()
    (folder / "attnlab_theirs" / "__init__.py").write_text(f"import os\nos.mkdir({str(mark)!r})\n")
    monkeypatch.syspath_prepend(folder)
    theirs = shutil.copytree(ROOT / "conf", folder / "theirs") / "config.yaml"
    theirs.write_text(theirs.read_text().replace("\nhydra:\n", "\nhydra:\n  searchpath: ['${oc.env:LATER,theirs}']\n"))
    later("pkg://attnlab_theirs")
    said = "hydra.searchpath must name folders; got 'pkg://attnlab_theirs'"
    assert_nothing_ran(command("train.py", "-cp", str(theirs.parent), "chain=false", *tiny), mark, said)


def write_choices(theirs: Path, beside: tuple[str, str] | None, mark: Path) -> None:
    choices = {"aa/a0": "{}", "aa/a1": "{}", "bb/b0": "{}", "bb/b1": "{}", "evil/none": "{}"}
    if beside is not None:
        choices[f"evil/{beside[0]}"] = beside[1].replace("MARK", str(mark))
    for name, text in choices.items():
        (theirs / name).parent.mkdir(exist_ok=True)
        (theirs / f"{name}.yaml").write_text(f"# @package _global_\n{text}\n")


@pytest.mark.slow
def test_nor_does_a_worker_of_one(
    command: Command, folder: Path, mark: Path, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Optuna composes nothing itself, so the job of the two choices meets its config in a process of its own."""
    # Optuna's own handler writes to the output of whichever test came to it first, which is closed by now.
    monkeypatch.setattr(logging.getLogger("optuna"), "handlers", [])
    monkeypatch.setattr("composed.LARGEST_CHECKED_GRID", 1)
    write_theirs(folder, BY_TWO, mark)
    write_choices(folder / "theirs", ("a1_b1", EVIL), mark)
    # The harmless jobs end soon: their data are not there.
    chosen = ("sweep=optuna", "sweep.trials=2", "hydra/sweeper/sampler=random", "launcher=joblib", "chain=false")
    arguments = (*chosen, "aa=a0,a1", "bb=b0,b1", "experiment=theirs")
    ended = command("train.py", "-m", "-cd", "theirs", *arguments, *tiny)
    assert not mark.exists()
    assert ended.code == 1
    assert "hydra.job_logging.handlers.x.() must be one of" in ended.err, ended.err
    assert "Traceback" not in ended.err


SLURM = {
    "commands": ("hydra.launcher.setup=[mkdir MARK]", "hydra.launcher.setup.0 must not be set"),
    "parameters": ("++hydra.launcher.additional_parameters.wrap=mkdir MARK", "additional_parameters.wrap must not be"),
    # The batch script has a line for each parameter, quoted for a shell; a second line would be a command.
    "second line": ("launcher.partition='cpu\nmkdir MARK\n'", "hydra.launcher.partition must be on one line"),
    "second line of a folder": ("hydra.sweep.dir='x\nmkdir MARK\n'", "hydra.sweep.dir must be on one line"),
    "by the clock": ("launcher.partition='${now:%f}'", "hydra.launcher.partition must be the same whenever"),
}  # fmt: skip


@pytest.mark.parametrize(("override", "said"), SLURM.values(), ids=SLURM)
def test_nothing_of_a_config_becomes_a_line_of_a_batch_script(
    command: Command, mark: Path, override: str, said: str
) -> None:
    assert_nothing_ran(command("train.py", "-m", "launcher=slurm", override.replace("MARK", str(mark))), mark, said)


OWN_LAUNCHER = "_target_: hydra_plugins.hydra_submitit_launcher.submitit_launcher.SlurmLauncher\n"
# What a launcher of a foreign group says, which no structure of the plugin's holds together.
LAUNCHERS = {
    "commands at the end": (f"{OWN_LAUNCHER}teardown: [mkdir MARK]", "hydra.launcher.teardown.0 must not be set"),
    "arguments of srun": (f"{OWN_LAUNCHER}srun_args: [mkdir]", "hydra.launcher.srun_args.0 must not be set"),
    "a node within": (f"{OWN_LAUNCHER}name: {{a: 1}}", "hydra.launcher.name.a must not be set"),
    "two lines": (f'{OWN_LAUNCHER}qos: "a\\nmkdir MARK"', "hydra.launcher.qos must be on one line"),
    "a class that is no launcher": (
        "_target_: hydra._internal.core_plugins.structured_config_source.StructuredConfigSource\n"
        "provider: theirs\npath: structured://this",
        "hydra.launcher._target_ must be a class of",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("launcher", "said"), LAUNCHERS.values(), ids=LAUNCHERS)
def test_a_launcher_has_what_its_plugin_describes(
    command: Command, folder: Path, mark: Path, tiny: tuple[str, ...], launcher: str, said: str
) -> None:
    write_theirs(folder, "defaults: [override /hydra/launcher: theirs]", mark)
    place = folder / "theirs" / "hydra" / "launcher" / "theirs.yaml"
    place.parent.mkdir(parents=True)
    place.write_text(launcher.replace("MARK", str(mark)))
    assert_nothing_ran(command("train.py", "-m", "-cd", "theirs", "experiment=theirs", "seed=1,2", *tiny), mark, said)


def test_a_launcher_stays_what_it_was_looked_at_as(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder goes into a batch script, and is that of the sweep, which may be chosen by the clock."""
    overrides = ["launcher=slurm", "hydra.sweep.dir='${oc.env:LATER,mine}'"]
    with ConfigSource(CONF, "config") as source:
        config = source.loader.load_configuration("config", overrides, RunMode.MULTIRUN)
    monkeypatch.setenv("LATER", "theirs\nmkdir x\n")
    assert config.hydra.sweep.dir == "theirs\nmkdir x\n"
    assert re.fullmatch(r"mine/\.submitit/[0-9a-f]{16}/%j", config.hydra.launcher.submitit_folder)
    with ConfigSource(CONF, "config") as source, pytest.raises(ExperimentError, match="must be on one line"):
        source.loader.load_configuration("config", overrides, RunMode.MULTIRUN)


def test_a_whole_node_stands_for_no_other() -> None:
    """Files cannot say so of all of them, but overrides can, and those of a job may come of a file."""
    with ConfigSource(CONF, "config") as source:
        for override in ("hydra.job_logging=${hydra.help}", "hydra.sweep=${paths}"):
            with pytest.raises(ExperimentError, match=r"must be written out, without"):
                source.loader.load_configuration("config", [override], RunMode.RUN)


def test_what_is_varied_has_the_key_of_a_setting(folder: Path, mark: Path) -> None:
    """Of these two a job's override would be made: hydra.job=${hydra.runtime.choices.=evil}"""
    write_theirs(folder, "hydra: {sweeper: {params: {'hydra.job=${hydra.runtime.choices.': 'evil}'}}}", mark)
    with (
        ConfigSource(CONF, "config", folder / "theirs") as source,
        pytest.raises(ExperimentError, match="must be the key of a setting or of a group"),
    ):
        source.loader.load_configuration("config", ["experiment=theirs"], RunMode.RUN)


def test_references_of_what_is_varied_stay(folder: Path, mark: Path) -> None:
    write_theirs(folder, "hydra: {sweeper: {params: {training.max_steps: '${seed}', seed: '1,2'}}}", mark)
    with ConfigSource(CONF, "config", folder / "theirs") as source:
        config = source.loader.load_configuration("config", ["experiment=theirs", SWEEP_MODE], RunMode.MULTIRUN)
    assert config.hydra.sweeper.params["training.max_steps"] == str(config.seed)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("hydra.launcher.submitit_folder=theirs/%t", "submitit_folder must stay .* for pickles are read from there"),
        ("hydra.sweep.dir=theirs/%t", "submitit_folder must have no % in the sweep's folder"),
        ('hydra.launcher.comment="x\\\' --wrap=mkdir"', "comment must have no quotes and backslashes"),
    ],
)
def test_a_launcher_of_slurm_reads_no_foreign_pickle_and_no_further_option(override: str, said: str) -> None:
    with ConfigSource(CONF, "config") as source, pytest.raises(ExperimentError, match=said):
        source.loader.load_configuration("config", ["launcher=slurm", override], RunMode.MULTIRUN)


def test_nobody_foresees_where_its_pickles_lie() -> None:
    with ConfigSource(CONF, "config") as source:
        configs = [source.loader.load_configuration("config", ["launcher=slurm"], RunMode.MULTIRUN) for _ in range(2)]
    assert len({config.hydra.launcher.submitit_folder for config in configs}) == 2


ESCAPED = ("\\\\\\${oc.env:LATER}", "${oc.env:NAMED}", "${oc.env:NOPE,''}\\\\\\${oc.env:LATER}")


@pytest.mark.parametrize("written", ESCAPED)
def test_nor_is_a_text_of_a_launcher_a_reference_once_it_is_read(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMED", "${oc.env:LATER}")
    monkeypatch.setenv("LATER", "a\nmkdir x")
    overrides = ["launcher=slurm", f'hydra.launcher.comment="{written}"']
    said = r"comment must (be written out|have no quotes)"
    with ConfigSource(CONF, "config") as source, pytest.raises(ExperimentError, match=said):
        source.loader.load_configuration("config", overrides, RunMode.MULTIRUN)


@pytest.mark.parametrize(
    "sampler", ["os.mkdir", "optuna.samplers.PartialFixedSampler", "optuna.samplers._tpe.sampler.os"]
)
def test_a_sweeper_takes_no_other_sampler(command: Command, mark: Path, sampler: str) -> None:
    ended = command("train.py", "-m", "sweep=optuna", f"hydra.sweeper.sampler._target_={sampler}")
    assert_nothing_ran(ended, mark, "hydra.sweeper.sampler._target_ must be one of optuna.samplers.TPESampler")


def test_no_package_is_imported_to_look_for_configs(
    command: Command, folder: Path, mark: Path, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by the command line nor by a config.yaml that goes before the project's."""
    (folder / "attnlab_theirs").mkdir()
    (folder / "attnlab_theirs" / "__init__.py").write_text(f"import os\nos.mkdir({str(mark)!r})\n")
    monkeypatch.syspath_prepend(folder)
    said = "hydra.searchpath must name folders; got 'pkg://attnlab_theirs'"
    assert_nothing_ran(command("train.py", "hydra.searchpath=[pkg://attnlab_theirs]", *tiny), mark, said)
    theirs = shutil.copytree(ROOT / "conf", folder / "theirs") / "config.yaml"
    primary = theirs.read_text()
    theirs.write_text(primary.replace("\nhydra:\n", "\nhydra:\n  searchpath: [pkg://attnlab_theirs]\n"))
    assert theirs.read_text() != primary
    assert_nothing_ran(command("train.py", "-cp", str(theirs.parent), *tiny), mark, said)


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.mkdir [MARK]", "!!python/name:os.mkdir"])
def test_yaml_makes_no_objects(command: Command, folder: Path, mark: Path, tag: str) -> None:
    write_theirs(folder, f"seed: {tag}", mark)
    assert_nothing_ran(command("train.py", "-cd", "theirs", "experiment=theirs"), mark, "is not valid YAML")


@pytest.mark.parametrize("option", ["--experimental-rerun", "--experimental-rer"])
def test_no_pickled_job_is_run_again(command: Command, folder: Path, mark: Path, option: str) -> None:
    import pickle

    from hostile import Payload

    (folder / "job.pickle").write_bytes(pickle.dumps(Payload(mark)))
    assert_nothing_ran(command("train.py", f"{option}=job.pickle"), mark, "it reads a pickle")


def test_what_the_payloads_would_do(tmp_path: Path) -> None:
    """They are no empty threats: git does run what the environment tells it to, and dictConfig calls the factory."""
    import logging.config

    mark = tmp_path / "pwned"
    told = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": f"mkdir {mark}"}
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "checkout")], check=True)
    subprocess.run(
        ["git", "-C", str(tmp_path / "checkout"), "status"],
        check=False,
        capture_output=True,
        env={**os.environ, **told},
    )
    assert mark.is_dir()
    mark.rmdir()
    with pytest.raises(ValueError, match="Unable to configure"):  # what it gives is no handler, but it has run
        logging.config.dictConfig(
            {"version": 1, "handlers": {"x": {"()": "os.mkdir", "path": str(mark)}}, "root": {"handlers": ["x"]}}
        )
    assert mark.is_dir()
