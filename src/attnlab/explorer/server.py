"""The explorer's local server: the page, and the analyses as JSON over POST."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import socket
import threading
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

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
from attnlab.data.prepared import LabelledData, PreparedData
from attnlab.errors import ExperimentError
from attnlab.tasks.classification.classifier import SentenceClassifier
from attnlab.tasks.cleaning import cleaned
from attnlab.tasks.translation import analysis
from attnlab.tasks.translation.beam_tree import beam
from attnlab.tasks.translation.step_numbers import step_numbers
from attnlab.tasks.translation.translator import Translator

PAGE = Path(__file__).parent / "page"
MAX_PAIRS = 200  # test pairs that the page offers
HOSTS = ["127.0.0.1", "localhost"]

# Checks the types of a request's arguments, and makes objects of them.
validated = validate_call(config=ConfigDict(arbitrary_types_allowed=True, extra="forbid"))

# By the last part of their addresses, /api/translate and so on.
ANALYSES: dict[str, Callable[..., Any]] = {
    "translate": validated(analysis.translate),
    "score": validated(analysis.score),
    "classify": validated(analysis.classify),
    "beam": validated(beam),
    "step_numbers": validated(step_numbers),
}


def explore(
    models: list[str], port: int = 0, browser: bool = True, data: Path | None = None
) -> None:
    """Serve the page of some models on this machine alone, until Ctrl-C.

    Args:
        models: model folders, or what else `attnlab.api.load` takes.
        port: 0 for any that is free.
        browser: whether to open the page.
        data: a folder of prepared data, whose test pairs the page offers.

    Raises ExperimentError for a model or data that cannot be loaded, and a port that is in use.
    """
    if data is not None and (data / LabelledData.tokenizer_files[0]).is_file():
        raise ExperimentError(
            f"--data {data} holds labelled sentences, not sentence pairs; leave it out"
        )
    torch.set_num_threads(1)  # one sentence is too little work for several
    loaded = {name: load(name) for name in models}
    corpus = None if data is None else PreparedData(data)
    app = application(loaded, corpus)

    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOSTS[0], port))
        except (OSError, OverflowError) as error:
            raise ExperimentError(
                f"--port {port} cannot be used ({error}); choose another one, or 0"
            ) from None
        listening.listen()  # a browser that is faster than the server waits
        address = f"http://{HOSTS[0]}:{listening.getsockname()[1]}/"
        print(f"explorer: {address}  (Ctrl-C stops it)", flush=True)
        if browser:
            webbrowser.open(address)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening])


def application(
    models: Mapping[str, Translator | SentenceClassifier], corpus: PreparedData | None = None
) -> Starlette:
    """The web application of models by their names, with the test pairs of a corpus."""
    # The analyses run in threads, and an analysis may put hooks on the model.
    lock = threading.Lock()

    def pairs(translator: Translator) -> list[dict[str, Any]]:
        return [] if corpus is None else first_pairs(translator, corpus)

    analyses = ANALYSES | {"pairs": validated(pairs)}

    def answer(body: Any, function: Callable[..., Any]) -> Any:
        name = body.get("model")
        if name not in models:
            raise ExperimentError(f"model must be one of {', '.join(models)}; got {name!r}")
        arguments = {key: value for key, value in body.items() if key != "model"}
        with lock:
            return function(models[name], **arguments)

    async def analyse(request: Request) -> Response:
        name = request.path_params["name"]
        function = analyses.get(name)
        if function is None:
            reason = f"there is no analysis {name!r}; there are {', '.join(analyses)}"
            return error_response(reason, 404)
        # A page of another site can send a form without being asked, but no JSON.
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return error_response("the request must have the content type application/json", 415)
        try:
            body = await request.json()
            return JSONResponse(await run_in_threadpool(answer, body, function))
        except ValidationError as error:
            return error_response(describe_first(error), 400)
        except ExperimentError as error:
            return error_response(str(error), 400)

    examples = first_test_source(corpus)

    async def list_models(_: Request) -> Response:
        rows = []
        for name, model in models.items():
            facts = analysis.describe(model, examples)
            rows.append({"name": name, "title": model_title(model), **facts})
        return JSONResponse(rows)

    async def index(_: Request) -> Response:
        return FileResponse(PAGE / "index.html")

    headers = security_headers()

    async def add_headers(request: Request, respond: RequestResponseEndpoint) -> Response:
        response = await respond(request)
        response.headers.update(headers)
        return response

    return Starlette(
        routes=[
            Route("/", index),
            Route("/api/models", list_models),
            Route("/api/{name}", analyse, methods=["POST"]),
            Mount("/", StaticFiles(directory=PAGE)),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS),
            Middleware(BaseHTTPMiddleware, add_headers),
        ],
    )


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


def model_title(model: Translator | SentenceClassifier) -> str | None:
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
    return f"{place}: {first['msg']}"


def first_test_source(corpus: PreparedData | None) -> list[str]:
    """The first source of the test split, or none."""
    if corpus is None:
        return []
    split = corpus.split("test")
    return [split.source_text(0)] if len(split) else []


def first_pairs(translator: Translator, data: PreparedData) -> list[dict[str, Any]]:
    """The first pairs of the test split.

    Returns:
        of each pair `source` and `target`, two texts, and `sure` and `possible`, lists of [target
        position, source position]. The lists are empty where the corpus has no alignment, or the
        model splits the texts into other tokens than those which the alignment links.
    """
    split = data.split("test")
    rows = range(min(len(split), MAX_PAIRS))
    sources = [split.source_text(row) for row in rows]
    targets = [split.target_text(row) for row in rows]
    # The model may clean and split its texts in another way than these data were.
    source_ids = translator.source_tokenizer.encode_ids(cleaned(sources, translator.cleaning))
    target_ids = translator.target_tokenizer.encode_ids(cleaned(targets, translator.cleaning))

    pairs = []
    for row in rows:
        pair: dict[str, Any] = {
            "source": sources[row],
            "target": targets[row],
            "sure": [],
            "possible": [],
        }
        has_source_tokens = source_ids[row] == split.source[row].tolist()
        has_target_tokens = target_ids[row] == split.target[row].tolist()
        if has_source_tokens and has_target_tokens:
            pair["sure"] = split.links("sure", row).tolist()
            pair["possible"] = split.links("possible", row).tolist()
        pairs.append(pair)
    return pairs
