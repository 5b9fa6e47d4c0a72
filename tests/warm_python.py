"""A `python` that starts at once: its commands run in forks of a server.

The server has everything imported. The fixture `warm_python` gives the path of the `python`. A
command `<path> pipelines/train.py ...` has its own folder, environment, streams, process group and
exit code, as with a new interpreter; SIGTERM and SIGINT are passed on, and whoever kills the
`python` kills the command. Beside the `python` lies an `attnlab` that starts at once, too. Anything
but a script runs in a real interpreter.

Three variables of its environment change what it does: WARM_PYTHON_FILE_LIMIT is the bytes that no
file of it may exceed, as a quota would have it; WARM_PYTHON_USER is the user that it becomes where
the tests run as root; WARM_PYTHON_BLANK_PICTURES, of any value, leaves its pictures blank (see
`blank_pictures.py`).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys

# Variables that the imports set, which do not come again in a fork
SET_BY_IMPORTS: dict[str, str] = {}
IMPORTED = (
    "alembic.command", "datasets", "hydra.main", "matplotlib.backends.backend_svg",
    "matplotlib.pyplot", "mlflow", "mlflow.pyfunc", "mlflow.store.tracking.sqlalchemy_store",
    "pytorch_lightning", "rich.live", "rich.progress", "sacrebleu", "torchmetrics",
    "attnlab.api", "attnlab.commands", "attnlab.data.lesson", "attnlab.data.trainers",
    "attnlab.data.grammars.korean_english",
    "attnlab.experiment.composition", "attnlab.experiment.evaluation",
    "attnlab.experiment.launch", "attnlab.experiment.preparation", "attnlab.experiment.run",
    "attnlab.experiment.sweep_plan", "attnlab.experiment.training", "attnlab.model.fast.packed",
    "attnlab.report.compare", "attnlab.report.reporting", "attnlab.runs.connection",
    "attnlab.runs.images", "attnlab.runs.logged_model", "attnlab.runs.sweep_display",
    "attnlab.runs.sweep_leader", "attnlab.runs.tracking", "attnlab.runs.upload",
    "attnlab.tasks.classification.evaluation", "attnlab.tasks.classification.module",
    "attnlab.tasks.translation.evaluation", "attnlab.tasks.translation.module",
    "attnlab.tasks.translation.report.section", "attnlab.tasks.translation.translator",
)  # fmt: skip


def ask(address: str, arguments: list[str]) -> None:
    """The client: hand the command to the server, and end as it ends."""
    is_script = bool(arguments) and (
        arguments[0].endswith(".py") or os.path.basename(arguments[0]) == "attnlab"
    )
    if not is_script:
        os.execv(sys.executable, [sys.executable, *arguments])
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect("\0" + address)
        except ConnectionRefusedError:  # its server has ended
            os.execv(sys.executable, [sys.executable, *arguments])
        request = json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()
        socket.send_fds(server, [len(request).to_bytes(8, "big")], [0, 1, 2])
        server.sendall(request)
        replies = server.makefile()
        command = int(replies.readline())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: os.kill(command, number))
        code = int(replies.readline())
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def serve(address: str) -> None:
    """Run commands until the process that started the server ends."""
    import importlib
    import selectors

    from quick_hydra import compose_quickly

    before = dict(os.environ)
    compose_quickly()
    for name in IMPORTED:
        importlib.import_module(name)
    _fill_caches()
    SET_BY_IMPORTS.update({name: value for name, value in os.environ.items() if name not in before})
    selector = selectors.DefaultSelector()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("\0" + address)
    listening.listen(64)
    selector.register(listening, selectors.EVENT_READ)
    # Closed by the end of the process that started this one
    selector.register(0, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listening:
                client, _ = listening.accept()
                try:
                    command = _fork(client, listening, selector)
                except (OSError, ValueError):  # the client was killed before it had asked
                    client.close()
                    continue
                ended = os.pidfd_open(command)
                selector.register(client, selectors.EVENT_READ, (command, ended, client))
                selector.register(ended, selectors.EVENT_READ, (command, ended, client))
                with contextlib.suppress(OSError):
                    client.sendall(f"{command}\n".encode())
            elif key.data is None:
                sys.exit()
            else:
                command, ended, client = key.data
                if key.fileobj is client:  # it was killed
                    # So early that it has no group of its own yet
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(command, signal.SIGKILL)
                    os.kill(command, signal.SIGKILL)
                code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
                selector.unregister(client)
                selector.unregister(ended)
                os.close(ended)
                with contextlib.suppress(OSError):
                    client.sendall(f"{code}\n".encode())
                client.close()
                break  # what else was ready may belong to the same command


def _fill_caches() -> None:
    """Read what every command reads once, and what does not change while the tests run.

    It is attnlab's code and configs, the installed packages, and the fonts.
    """
    from mlflow.utils.requirements_utils import warn_dependency_requirement_mismatches

    from attnlab.config.names import readable_name
    from attnlab.experiment.composition import compose
    from attnlab.experiment.point import TRAIN_SOURCES
    from attnlab.experiment.sections import TRAIN_SECTIONS
    from attnlab.plots.figure import label_text
    from attnlab.report.reporting import REPORT_SOURCES

    experiment = compose([])
    experiment.identity(TRAIN_SECTIONS, "", (*TRAIN_SOURCES, *REPORT_SOURCES))
    readable_name(experiment.config)
    label_text("a")
    warn_dependency_requirement_mismatches(["mlflow"])


def _fork(client: socket.socket, *inherited: object) -> int:
    """Start the command that a client asks for; returns its process."""
    header, streams, _, _ = socket.recv_fds(client, 8, 3)
    with client.makefile("rb") as reader:
        arguments, folder, environment = json.loads(reader.read(int.from_bytes(header, "big")))
    process = os.fork()
    if process == 0:
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        for each in (client, *inherited):
            each.close()
        _be_the_command(arguments, folder, environment)
    for stream in streams:
        os.close(stream)
    return process


def _be_the_command(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Do what a new interpreter would do with the command; never returns."""
    import atexit
    import resource
    import runpy
    import threading
    import traceback

    code: object = 1
    try:
        os.chdir(folder)
        # Whoever was started behind a shell's `&` ignores it, and so would the command.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        limit, user, blank = (
            environment.pop(f"WARM_PYTHON_{name}", None)
            for name in ("FILE_LIMIT", "USER", "BLANK_PICTURES")
        )
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
        if user is not None and os.geteuid() == 0:
            os.setgid(int(user))
            os.setuid(int(user))
        os.environ.clear()
        os.environ.update(SET_BY_IMPORTS | environment)
        if blank is not None:
            from blank_pictures import leave_pictures_blank

            leave_pictures_blank()
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        try:
            runpy.run_path(arguments[0], run_name="__main__")
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
            if isinstance(code, str):
                print(code, file=sys.stderr)
        threading._shutdown()  # type: ignore[attr-defined]  # joblib ends its workers then
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # what would be a stack trace at the shell
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    ask(sys.argv[1], sys.argv[2:])
