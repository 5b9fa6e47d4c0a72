"""How every stage starts and ends: the whole config is checked before anything runs, and a mistake is a sentence."""

from __future__ import annotations

import errno
import functools
import os
import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from attnlab.composition.error import ExperimentError
from composed import CONF, ConfigSource
from override_problems import config_sentence

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
# A full disk or a folder that may not be written to is no fault of the program.
MACHINE_FAULTS = {
    errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.ENAMETOOLONG, errno.ENOSPC, errno.ENOTDIR, errno.EPERM, errno.EROFS,
}  # fmt: skip

Stage = Callable[[DictConfig], Any]


class JobFailedError(ExperimentError):
    """A job of a sweep failed, and has said so."""


def launch(stage: Stage) -> None:
    """Run a stage as Hydra's application; a user's mistake is told in sentences, with exit code 1."""
    with mistakes_as_sentences():
        arguments = _arguments()
        if not arguments.shell_completion:
            _check_before_start(arguments)
        if arguments.help:
            print(stage.__globals__["__doc__"].strip(), end="\n\n")
        hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(_as_job(stage))()


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
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        if error.errno not in MACHINE_FAULTS:
            raise
        _fail([f"{error.filename or 'a file'} cannot be used: {error.strerror}"])
    except KeyboardInterrupt:
        print("stopped by Ctrl-C", file=sys.stderr)
        sys.exit(130)


def _fail(problems: list[str]) -> NoReturn:
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    sys.exit(1)


class _Arguments(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ExperimentError(f"{message}; settings are written key=value, and --help shows them")


def _arguments() -> Namespace:
    """The command line, as Hydra is about to read it."""
    parser = get_args_parser()
    parser.__class__ = _Arguments
    arguments = parser.parse_args()
    if arguments.experimental_rerun is not None:
        raise ExperimentError(
            "--experimental-rerun is not allowed: it reads a pickle, which can run any code; the choices of a run "
            "stand in .hydra/overrides.yaml of its folder"
        )
    return arguments


def _check_before_start(arguments: Namespace) -> None:
    """Compose what Hydra is about to compose and check all of it, Hydra's own node included, while nothing has run."""
    directory = CONF
    if arguments.config_path is not None:
        directory = Path(sys.argv[0]).resolve().parent / arguments.config_path
    extra = None if arguments.config_dir is None else Path(arguments.config_dir).absolute()
    only_asks = arguments.help or arguments.hydra_help or arguments.cfg or arguments.info
    with ConfigSource(directory, arguments.config_name or "config", extra) as source:
        if only_asks:
            source.check_composition(arguments.overrides)
        elif arguments.multirun or "hydra.mode=MULTIRUN" in arguments.overrides:
            source.check_sweep(arguments.overrides)
        else:
            source.check(arguments.overrides)


def _as_job(stage: Stage) -> Stage:
    """A sweep's job tells at once what went wrong, for Hydra keeps only the first failure of a sweep, to its end."""

    @functools.wraps(stage)
    def job(config: DictConfig) -> Any:
        node = HydraConfig.get()
        if node.mode != RunMode.MULTIRUN:
            return stage(config)
        try:
            return stage(config)
        except Exception as error:
            where = f"job {node.job.num} ({node.job.override_dirname})"
            if isinstance(error, ExperimentError):
                for problem in error.problems:
                    print(f"error: {where}: {problem}", file=sys.stderr)
            else:
                print(f"error: {where}:", file=sys.stderr)
                traceback.print_exception(error)
            raise JobFailedError(f"{where} failed") from error

    return job


def _return_value(self: JobReturn) -> Any:
    if self.status is JobStatus.FAILED:
        raise self._return_value
    return self._return_value


# Hydra would announce every failure with "Error executing job with overrides: [...]" before it raises.
JobReturn.return_value = JobReturn.return_value.getter(_return_value)  # type: ignore[method-assign,attr-defined]
