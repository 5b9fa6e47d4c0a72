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
from attnlab.explorer import analysis
from attnlab.explorer.beam_tree import beam
from attnlab.explorer.step_numbers import step_numbers
from attnlab.inference.classifier import SentenceClassifier
from attnlab.inference.cleaning import cleaned
from attnlab.inference.translator import Translator

PAGE = Path(__file__).parent / "page"
MOST_PAIRS = 200  # of a corpus, beside which a model's attention is shown
HOSTS = ["127.0.0.1", "localhost"]
checked = validate_call(config=ConfigDict(arbitrary_types_allowed=True, extra="forbid"))
ANALYSES: dict[str, Callable[..., Any]] = {
    function.__name__: checked(function)
    for function in (analysis.translate, analysis.score, analysis.classify, beam, step_numbers)
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
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(application(loaded, corpus), log_level="warning")).run(
                sockets=[listening]
            )


def application(
    models: Mapping[str, Translator | SentenceClassifier], corpus: PreparedData | None = None
) -> Starlette:
    """The web application of models by their names, with the test pairs of a corpus."""
    one_at_a_time = threading.Lock()

    def pairs(translator: Translator) -> list[dict[str, Any]]:
        return [] if corpus is None else first_pairs(translator, corpus)

    analyses = ANALYSES | {"pairs": checked(pairs)}

    def answer(body: Any, function: Callable[..., Any]) -> Any:
        if (name := body.get("model")) not in models:
            raise ExperimentError(f"model must be one of {', '.join(models)}; got {name!r}")
        with one_at_a_time:
            return function(
                models[name], **{key: value for key, value in body.items() if key != "model"}
            )

    async def analyse(request: Request) -> Response:
        name = request.path_params["name"]
        if (function := analyses.get(name)) is None:
            return refusal(f"there is no analysis {name!r}; there are {', '.join(analyses)}", 404)
        # A page of another site can send a form without being asked, but no JSON.
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return refusal("the request must have the content type application/json", 415)
        try:
            return JSONResponse(await run_in_threadpool(answer, await request.json(), function))
        except ValidationError as error:
            return refusal(sentence(error), 400)
        except ExperimentError as error:
            return refusal(str(error), 400)

    test = None if corpus is None else corpus.split("test")
    examples = [test.source_text(0)] if test else []

    async def list_models(_: Request) -> Response:
        return JSONResponse([
            {"name": name, "title": title_of(model), **analysis.describe(model, examples)}
            for name, model in models.items()
        ])  # fmt: skip

    async def index(_: Request) -> Response:
        return FileResponse(PAGE / "index.html")

    routes = [
        Route("/", index),
        Route("/api/models", list_models),
        Route("/api/{name}", analyse, methods=["POST"]),
        Mount("/", StaticFiles(directory=PAGE)),
    ]
    headers = security_headers()

    async def add_headers(request: Request, respond: RequestResponseEndpoint) -> Response:
        response = await respond(request)
        response.headers.update(headers)
        return response

    guards = [
        Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS),
        Middleware(BaseHTTPMiddleware, add_headers),
    ]
    return Starlette(routes=routes, middleware=guards)


def security_headers() -> dict[str, str]:
    """They let the page ask this server alone, and run none but its own scripts."""
    page = (PAGE / "index.html").read_text("utf-8")
    inline = re.findall(r"<script type=\"importmap\">(.*?)</script>", page, re.S)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inline]
    scripts = " ".join(f"'sha256-{each}'" for each in hashes)
    return {
        "content-security-policy": (
            f"default-src 'self'; script-src 'self' {scripts}; img-src 'self' data: blob:"
        ),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }


def title_of(model: Translator | SentenceClassifier) -> str | None:
    """The name of the experiment that trained a model; None where its config is not known."""
    return None if model.config is None else readable_name(model.config)


def refusal(reason: str, status: int) -> JSONResponse:
    return JSONResponse({"error": reason}, status_code=status)


def sentence(error: ValidationError) -> str:
    """The first thing that is wrong with a request, with its place in it."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return (
        f"{place}: {first['msg']}"
        if place not in ("", "0")
        else "this analysis does not fit the kind of the model"
    )


def first_pairs(translator: Translator, data: PreparedData) -> list[dict[str, Any]]:
    """The first pairs of the test split.

    Returns:
        of each pair `source` and `target`, two texts, and `sure` and `possible`, lists of [target
        position, source position]. The lists are empty where the corpus has no alignment, or the
        model splits the texts into other tokens than those which the alignment links.
    """
    split = data.split("test")
    rows = range(min(len(split), MOST_PAIRS))
    sources, targets = (
        [split.source_text(row) for row in rows],
        [split.target_text(row) for row in rows],
    )
    # The model may clean its texts in another way than these data were.
    read = (
        translator.source_tokenizer.encode_ids(cleaned(sources, translator.cleaning)),
        translator.target_tokenizer.encode_ids(cleaned(targets, translator.cleaning)),
    )
    pairs = []
    for row in rows:
        pair: dict[str, Any] = {
            "source": sources[row],
            "target": targets[row],
            "sure": [],
            "possible": [],
        }
        if (read[0][row], read[1][row]) == (split.source[row].tolist(), split.target[row].tolist()):
            pair |= {kind: split.links(kind, row).tolist() for kind in ("sure", "possible")}
        pairs.append(pair)
    return pairs
