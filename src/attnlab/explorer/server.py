"""The explorer's local server: the page, and the analyses as JSON over POST."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import shlex
import socket
import tempfile
import webbrowser
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import torch
import uvicorn
from pydantic import ValidationError
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
from attnlab.errors import ExperimentError
from attnlab.explorer import PAGE
from attnlab.explorer.served_models import Corpora, ServedModels
from attnlab.plots.fonts import HANGUL, KANA, browser_font
from attnlab.plots.heat_map_css import heat_map_css
from attnlab.tasks.predictor import Predictor
from attnlab.training.hardware import use_plain_float32

HOSTS = ["127.0.0.1", "localhost"]
DEFAULT_PORT = 8765  # a fixed one, so that links to the page stay right
PORTS_TO_TRY = 20


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
    served = ServedModels(models, data, downloads)
    known = served.analyses

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
            return JSONResponse(await run_in_threadpool(served.answer, name, body))
        except ValidationError as error:
            return error_response(describe_first(error), 400)
        except ExperimentError as error:
            return error_response(str(error), 400)

    async def list_models(_: Request) -> Response:
        return JSONResponse(served.facts())

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
