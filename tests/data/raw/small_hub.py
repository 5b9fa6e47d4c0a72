"""A local server that answers as the Hugging Face hub does for one dataset.

The files of the dataset lie in a folder.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlparse

REVISION = "0123456789abcdef0123456789abcdef01234567"
DATASET = "owner/pairs"


@contextmanager
def small_hub(folder: Path) -> Iterator[str]:
    """Gives the address of the server."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send_json(
                [_entry(folder, name) for name in asked["paths"] if (folder / name).is_file()]
            )

        def _answer(self) -> None:
            path = unquote(urlparse(self.path).path)
            names = [
                file.relative_to(folder).as_posix()
                for file in sorted(folder.rglob("*"))
                if file.is_file()
            ]
            if "/resolve/" in path:
                self._send_file(path.partition("/resolve/")[2].partition("/")[2])
            elif "/tree/" in path:
                inside = folder / path.partition("/tree/")[2].partition("/")[2]
                is_recursive = "recursive=true" in self.path.lower()
                found = sorted(inside.rglob("*") if is_recursive else inside.iterdir())
                self._send_json(
                    [_entry(folder, each.relative_to(folder).as_posix()) for each in found]
                )
            elif path.startswith(f"/api/datasets/{DATASET}"):
                siblings = [{"rfilename": name} for name in names]
                self._send_json(
                    {
                        "id": DATASET,
                        "sha": REVISION,
                        "siblings": siblings,
                        "tags": [],
                        "private": False,
                    }
                )
            else:
                self.send_error(404)

        def _send_file(self, name: str) -> None:
            if not (folder / name).is_file():
                self.send_response(404)
                self.send_header("X-Error-Code", "EntryNotFound")
                self.send_header("X-Repo-Commit", REVISION)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            content = (folder / name).read_bytes()
            self.send_response(200)
            self.send_header("X-Repo-Commit", REVISION)
            self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def _send_json(self, content: object) -> None:
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _entry(folder: Path, name: str) -> dict[str, object]:
    if (folder / name).is_dir():
        return {
            "type": "directory",
            "path": name,
            "size": 0,
            "oid": hashlib.sha1(name.encode()).hexdigest(),
        }
    content = (folder / name).read_bytes()
    return {
        "type": "file",
        "path": name,
        "size": len(content),
        "oid": hashlib.sha1(content).hexdigest(),
    }
