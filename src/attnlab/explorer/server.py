"""The explorer's local server: the page, and the analyses as JSON over POST."""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import re
import shlex
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch
import uvicorn
from pydantic import ConfigDict, ValidationError, validate_call
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from attnlab.api import load
from attnlab.config.names import readable_name
from attnlab.data.prepared import Prepared
from attnlab.errors import ExperimentError
from attnlab.explorer.formed import formed, trainings_of
from attnlab.explorer.loss_table import LossTable
from attnlab.plots.fonts import HANGUL, KANA, browser_font
from attnlab.plots.heat_map_css import heat_map_css
from attnlab.tasks.edited_source import first_known_text
from attnlab.tasks.predictor import ExplorerPage, Predictor
from attnlab.tasks.saved import task_of_predictor
from attnlab.training.hardware import use_plain_float32

PAGE = Path(__file__).parent / "page"
HOSTS = ["127.0.0.1", "localhost"]
DEFAULT_PORT = 8765  # a fixed one, so that links to the page stay right
PORTS_TO_TRY = 20

# A folder of prepared data for all models that read pairs, or one for each of some models by name.
Corpora: TypeAlias = Path | Mapping[str, Path] | None


@functools.cache
def validated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The analysis with the types of its arguments checked, and made of a request's JSON."""
    return validate_call(config=ConfigDict(arbitrary_types_allowed=True, extra="forbid"))(function)


def explore(
    models: list[str],
    port: int | None = None,
    browser: bool = True,
    data: Corpora = None,
    command: str | None = None,
    allow: Sequence[str] = (),
    device: str = "cpu",
) -> None:
    """Serve the page of some models on this machine alone, until Ctrl-C.

    Args:
        models: model folders, or what else `attnlab.api.load` takes.
        port: None for the default one, or the next one that is free; 0 for any that is free.
        browser: whether to open the page.
        data: a folder of prepared data, whose test split the page offers; or for each model, by its
            name, a folder of its own.
        command: that starts this server again; None for `attnlab explore`.
        allow: modules outside of attnlab whose classes the models may name.
        device: where the models compute, as torch writes it.

    Raises ExperimentError for a model or data that cannot be loaded, a device that cannot be used,
    and a port that is in use.
    """
    use_plain_float32()
    torch.set_num_threads(1)  # one sentence is too little work for several
    with listen(port) as listening, tempfile.TemporaryDirectory(prefix="attnlab-") as downloads:
        found = listening.getsockname()[1]
        if command is None:
            command = start_command(models, found, data, allow, device)
        predictors = {name: load(name, device, allow) for name in models}
        app = application(predictors, data, command, Path(downloads))

        address = f"http://{HOSTS[0]}:{found}/"
        is_taken = port is None and found != DEFAULT_PORT
        reason = f"port {DEFAULT_PORT} is taken; " if is_taken else ""
        print(f"explorer: {address}  ({reason}Ctrl-C stops it)", flush=True)
        if browser:
            webbrowser.open(address)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening])


def listen(port: int | None) -> socket.socket:
    """A socket of a port as `explore` takes it; raises ExperimentError for one that is in use."""
    ports = [port]
    if port is None:
        # Any free one after those
        ports = [*range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TO_TRY), 0]
    for number in ports:
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOSTS[0], number))
            listening.listen()  # a browser that is faster than the server waits
        except (OSError, OverflowError) as error:
            listening.close()
            problem = error
        else:
            return listening
    raise ExperimentError(f"--port {port} cannot be used ({problem}); choose another one, or 0")


def start_command(
    models: Sequence[str],
    port: int,
    data: Corpora,
    allow: Sequence[str] = (),
    device: str = "cpu",
) -> str:
    """The `attnlab explore` that starts this server again, at the same address."""
    words = ["attnlab", "explore", *models, "--port", str(port)]
    if isinstance(data, Path):
        words += ["--data", str(data)]
    for module in allow:
        words += ["--allow", module]
    if device != "cpu":
        words += ["--device", device]
    return shlex.join(words)


def application(
    models: Mapping[str, Predictor],
    data: Corpora = None,
    command: str = "",
    downloads: Path | None = None,
) -> Starlette:
    """The web application of models by their names, with the test split of prepared data.

    command: that starts it, which the page shows where the server has stopped.
    downloads: a folder for what MLflow has of the models' trainings; None leaves it out.

    Raises ExperimentError for a model that has no page, and for data that none of them reads.
    """
    pages = {name: page_of(name, model) for name, model in models.items()}
    opened = open_data(pages, data)
    pairs = pairs_of(pages, opened)
    # The analyses run in threads, and an analysis may put hooks on the model.
    lock = threading.Lock()
    tables = loss_tables(pages, opened, lock)
    trainings = trainings_of(models, downloads)

    def answer(name: str, body: Any) -> Any:
        model = body.get("model")
        if model not in models:
            raise ExperimentError(f"model must be one of {', '.join(models)}; got {model!r}")
        arguments = {key: value for key, value in body.items() if key != "model"}
        if name == "pairs":
            return pairs[model]
        if name == "losses":
            if model not in tables:
                raise ExperimentError("there are no test sentences; start the explorer with --data")
            return validated(LossTable.page)(tables[model], **arguments)
        if name == "formed":
            if model not in trainings:
                raise ExperimentError("no attention of this model's validations was kept")
            return formed(trainings[model], models[model].config)
        function = pages[model].analyses.get(name)
        if function is None:
            raise ExperimentError("this analysis does not fit the kind of the model")
        with lock:
            return validated(function)(models[model], **arguments)

    known = ["pairs", "losses", "formed"]
    for page in pages.values():
        known += [name for name in page.analyses if name not in known]

    async def analyse(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in known:
            reason = f"there is no analysis {name!r}; there are {', '.join(known)}"
            return error_response(reason, 404)
        # A page of another site can send a form without being asked, but no JSON.
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return error_response("the request must have the content type application/json", 415)
        try:
            body = await request.json()
        except ValueError:
            return error_response("the request must be JSON", 400)
        if not isinstance(body, dict):
            return error_response("the request must be a JSON object", 400)
        try:
            return JSONResponse(await run_in_threadpool(answer, name, body))
        except ValidationError as error:
            return error_response(describe_first(error), 400)
        except ExperimentError as error:
            return error_response(str(error), 400)

    async def list_models(_: Request) -> Response:
        rows = []
        for name, model in models.items():
            # The first pair of the data, if the model knows its words
            examples = [pair["source"] for pair in pairs[name][:1]]
            facts = describe(model, pages[name], examples)
            offers = {"has_test_set": name in tables, "has_formed": name in trainings}
            rows.append({"name": name, "title": model_title(model), **offers, **facts})
        return JSONResponse(rows)

    async def about(_: Request) -> Response:
        return JSONResponse({"command": command})

    async def index(_: Request) -> Response:
        return FileResponse(PAGE / "index.html")

    async def heat_map_style(_: Request) -> Response:
        return Response(heat_map_css(), media_type="text/css")

    headers = security_headers()

    async def add_headers(request: Request, respond: RequestResponseEndpoint) -> Response:
        response = await respond(request)
        response.headers.update(headers)
        return response

    return Starlette(
        routes=[
            Route("/", index),
            Route("/heat_map.css", heat_map_style),
            Route("/fonts/hangul.ttf", font_route(HANGUL)),
            Route("/fonts/kana.ttf", font_route(KANA)),
            Route("/api/models", list_models),
            Route("/api/about", about),
            Route("/api/{name}", analyse, methods=["POST"]),
            Mount("/", StaticFiles(directory=PAGE)),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS),
            Middleware(BaseHTTPMiddleware, add_headers),
        ],
    )


def font_route(family: str) -> Callable[[Request], Awaitable[Response]]:
    """Serves a font of the package, for machines that have none for its script."""

    async def font(_: Request) -> Response:
        return Response(browser_font(family), media_type="font/ttf")

    return font


def page_of(name: str, model: Predictor) -> ExplorerPage:
    task = task_of_predictor(model)
    page = None if task is None else task.explorer_page(model)
    if page is None:
        raise ExperimentError(
            f"{name}: the explorer has no page for a {type(model).__name__}; leave it out"
        )
    return page


def open_data(pages: Mapping[str, ExplorerPage], data: Corpora) -> dict[str, Prepared]:
    """The prepared data that each model is offered; none without data.

    Raises ExperimentError where no model reads them, and where they are damaged.
    """
    if data is None:
        return {}
    opened: dict[str, Prepared] = {}
    folders = data if isinstance(data, Mapping) else dict.fromkeys(pages, data)
    for name, folder in folders.items():
        reads = pages[name].reads
        if reads is not None and not reads.is_other_kind(folder):
            opened[name] = reads(folder)
    if not opened:
        shown = ", ".join(sorted({str(folder) for folder in folders.values()}))
        raise ExperimentError(f"--data {shown}: none of these models reads such data; leave it out")
    return opened


def pairs_of(
    pages: Mapping[str, ExplorerPage], opened: Mapping[str, Prepared]
) -> dict[str, list[Any]]:
    """For each model the test pairs that it is offered; opened: as `open_data` returns it."""
    pairs: dict[str, list[Any]] = {name: [] for name in pages}
    for name, data in opened.items():
        read = pages[name].pairs
        if read is not None:
            pairs[name] = read(data)
    return pairs


def loss_tables(
    pages: Mapping[str, ExplorerPage],
    opened: Mapping[str, Prepared],
    lock: threading.Lock,
) -> dict[str, LossTable]:
    """The table of the test sentences of each model that reads them; arguments as above."""
    tables: dict[str, LossTable] = {}
    for name, data in opened.items():
        score = pages[name].score_sentences
        if score is not None:
            tables[name] = LossTable(score(data), lock)
    return tables


def describe(model: Predictor, page: ExplorerPage, examples: Sequence[str] = ()) -> dict[str, Any]:
    """The kind of a model, the parts whose formulas the page shows, and an example to start with.

    The example is the first text, of `examples` and then that of the model's own data, that is not
    mostly `<unk>` to the model; "" for none.
    """
    example = first_known_text(model, [*examples, page.example])
    return {"kind": page.kind, "example": example, **page.parts}


def security_headers() -> dict[str, str]:
    """Headers that let the page ask this server alone, and run no scripts but its own."""
    page = (PAGE / "index.html").read_text("utf-8")
    # An import map must be inline, which the policy allows by its hash.
    hashes = []
    for import_map in re.findall(r"<script type=\"importmap\">(.*?)</script>", page, re.DOTALL):
        digest = hashlib.sha256(import_map.encode()).digest()
        hashes.append(f"'sha256-{base64.b64encode(digest).decode()}'")
    scripts = " ".join(hashes)
    return {
        "content-security-policy": (
            f"default-src 'self'; script-src 'self' {scripts}; img-src 'self' data: blob:"
        ),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }


def model_title(model: Predictor) -> str | None:
    """The name of the experiment that trained a model; None where its config is unknown."""
    return None if model.config is None else readable_name(model.config)


def error_response(reason: str, status: int) -> JSONResponse:
    return JSONResponse({"error": reason}, status_code=status)


def describe_first(error: ValidationError) -> str:
    """The first problem of a request, with its place in it."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    # The model is the function's first argument.
    if place in ("", "0"):
        return "this analysis does not fit the kind of the model"
    reason = first["msg"].removeprefix("Value error, ")
    return f"{place}: {reason}"
