"""How every stage starts and ends: the whole config is checked before anything runs, and a mistake is a sentence."""

from __future__ import annotations

import errno
import functools
import os
import select
import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from attnlab.config.secrets import into_environment, masked
from attnlab.errors import ExperimentError, printable
from attnlab.experiment import inside_hydra
from attnlab.experiment.composed import CONF, ConfigSource
from attnlab.experiment.hydra_node import SWEEP_MODE
from attnlab.experiment.override_problems import config_sentence
from attnlab.sweeps.job_failed import JobFailedError

if TYPE_CHECKING:
    from attnlab.experiment.sweep_plan import SweepPlan
    from attnlab.sweeps.job import SweepJob

# Dependencies that would call home, or warn about how they were started.
QUIET_ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "TOKENIZERS_PARALLELISM": "false",
}
# oneDNN, and torch around it, keep a product made for each shape that they met, a thousand of them by default, and
# batches come in many shapes: training in bfloat16 grew by gigabytes. Read when torch starts.
BOUNDED_CACHES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16", "LRU_CACHE_CAPACITY": "16"}
# A full disk, a folder that may not be written to, a mounted one that cannot be replaced: no fault of the program.
MACHINE_FAULTS = {
    errno.EACCES, errno.EBUSY, errno.EDQUOT, errno.EFBIG, errno.ENAMETOOLONG, errno.ENOSPC, errno.ENOTDIR, errno.EPERM,
    errno.EROFS, errno.EXDEV,
}  # fmt: skip

Stage = Callable[[DictConfig], Any]


def launch(stage: Stage, leads_sweeps: bool = False) -> None:
    """Run a stage as Hydra's application; a user's mistake is told in sentences, with exit code 1.

    leads_sweeps: whether a multirun of this stage is a sweep, with records and a run of its own, or merely many runs.
    """
    with mistakes_as_sentences():
        _end_with_dvc()
        arguments = _arguments()
        plan = None if arguments.shell_completion else _check_before_start(arguments)
        if arguments.help:
            print(str(stage.__globals__["__doc__"]).strip(), end="\n\n")
        application = hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(Job(stage))
        with (
            inside_hydra.its_own_faults_told(),
            nullcontext() if plan is None or not leads_sweeps else plan.led(),
        ):
            application()


def _end_with_dvc() -> None:
    """A stage must not live on when `dvc repro` is killed: it would write what the next one writes too."""
    if "DVC_STAGE" in os.environ:
        from attnlab.sweeps.outliving import end_with, starter

        end_with(starter())


@contextmanager
def mistakes_as_sentences() -> Iterator[None]:
    """End the process with the sentences of an error that the user can mend; any other error keeps its traceback."""
    for name, value in {**QUIET_ENVIRONMENT, **BOUNDED_CACHES}.items():
        os.environ.setdefault(name, value)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra's own report would bury the sentence and end the process
    try:
        yield
    except JobFailedError:
        _fail(["the sweep has failed jobs; what they say stands above"])
    except ExperimentError as error:
        _fail(error.problems)
    except (HydraException, OmegaConfBaseException) as error:
        _fail([config_sentence(error)])
    except BrokenPipeError:
        if not _has_lost_its_reader():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        if error.errno not in MACHINE_FAULTS:
            raise
        _fail([f"{error.filename or 'a file'} cannot be used: {error.strerror}"])
    except KeyboardInterrupt:
        print("stopped by Ctrl-C", file=sys.stderr)
        sys.exit(130)


def _has_lost_its_reader() -> bool:
    """Whether whoever reads our output, such as `head`, has seen enough; a worker's or a server's end is another."""
    for stream in (1, 2):
        poll = select.poll()
        poll.register(stream, 0)  # an error is told unasked
        if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
            return True
    return False


def _fail(problems: list[str]) -> NoReturn:
    for problem in problems:
        print(f"error: {printable(masked(problem))}", file=sys.stderr)
    sys.exit(1)


class _Arguments(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ExperimentError(f"{message}; settings are written key=value, and --help shows them")


def _arguments() -> Namespace:
    """The command line, as Hydra is about to read it."""
    parser = get_args_parser()
    parser.__class__ = _Arguments
    sys.argv[1:] = into_environment(sys.argv[1:], os.environ)  # Hydra writes down what it is told
    arguments = parser.parse_args()
    if arguments.experimental_rerun is not None:
        raise ExperimentError(
            "--experimental-rerun is not allowed: it reads a pickle, which can run any code; the choices of a run "
            "stand in .hydra/overrides.yaml of its folder"
        )
    asked = arguments.run + arguments.multirun + arguments.shell_completion
    if asked + (arguments.cfg is not None) + (arguments.info is not None) > 1:
        raise ExperimentError("give at most one of --run, --multirun, --cfg, --info and --shell-completion")
    if arguments.resolve and not (arguments.cfg or arguments.help):
        raise ExperimentError("--resolve only goes with --cfg or --help; add one of them")
    ways = ("install", "uninstall", "query")
    if arguments.shell_completion and not any(text.split("=")[0] in ways for text in arguments.overrides):
        raise ExperimentError(f"--shell-completion must be given one of {', '.join(ways)}, such as install=bash")
    return arguments


def _check_before_start(arguments: Namespace) -> SweepPlan | None:
    """Compose what Hydra is about to compose and check all of it, Hydra's own node included, while nothing has run."""
    directory = CONF
    if arguments.config_path is not None:
        directory = Path(sys.argv[0]).resolve().parent / arguments.config_path
    extra = None if arguments.config_dir is None else Path(arguments.config_dir).absolute()
    only_asks = arguments.help or arguments.hydra_help or arguments.cfg or arguments.info
    with ConfigSource(directory, arguments.config_name or "config", extra) as source:
        if only_asks:
            source.check_composition(arguments.overrides)
        elif arguments.multirun or SWEEP_MODE in arguments.overrides:
            return source.check_sweep(arguments.overrides)
        else:
            source.check(arguments.overrides)
    return None


class Job:
    """A stage as Hydra calls it.

    A job of a sweep tells at once what went wrong, for Hydra keeps only the first failure of a sweep, to its end.
    """

    def __init__(self, stage: Stage) -> None:
        functools.update_wrapper(self, stage)
        self.stage = stage
        self.__code__ = stage.__code__

    def __call__(self, config: DictConfig) -> Any:
        from attnlab.experiment.experiment import overrides
        from attnlab.sweeps.job import running
        from attnlab.tracking.address import told_overrides

        node = HydraConfig.get()
        if node.mode != RunMode.MULTIRUN:
            return self.stage(config)
        where = f"job {node.job.num} ({','.join(sorted(told_overrides(overrides())))})"
        try:
            with running(node.job.num, told_overrides(overrides()), Path(node.runtime.output_dir)) as job:
                try:
                    return self.stage(config)
                except Exception as error:
                    if job is not None and job.record.run_id is None:
                        _track_failure(config, job, error)
                    raise
        except Exception as error:
            if isinstance(error, ExperimentError):
                for problem in error.problems:
                    print(f"error: {printable(f'{where}: {masked(problem)}')}", file=sys.stderr)
            else:
                print(f"error: {where}:", file=sys.stderr)
                traceback.print_exception(error)
            raise JobFailedError(f"{where} failed") from None

    def __reduce__(self) -> Any:
        return type(self), (self.stage,)


def _track_failure(config: DictConfig, job: SweepJob, error: Exception) -> None:
    """A job that failed before it had a run gets one, so that the tracker shows it beside the others."""
    from attnlab.experiment.experiment import check
    from attnlab.sweeps.job import sentence
    from attnlab.tracking.run_folder import RunRecord

    try:
        experiment = check(config)
        record = RunRecord(config=experiment.told, identity="", data_digest="", tags=job.tags, name=job.record.name)
        with experiment.tracking.start(experiment.paths.runs_folder, job.state, record) as run:
            run.finish("FAILED", sentence(error))
        job.tell(run_id=run.run_id)
    except ExperimentError:
        return  # the config or the tracker is what failed, and what it says is said by the job itself


# At import, for a worker of a sweep imports this file to find the job, and composes its config afterwards.
inside_hydra.settle_in()
