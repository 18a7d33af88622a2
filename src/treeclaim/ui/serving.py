# SPDX-License-Identifier: Apache-2.0
"""Serves the files of the pages below `/ui/` (contract page 99, section 7).

All files are read when the service starts, and a request can name nothing else: no path of a request
ever reaches the file system.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

PREFIX = "/ui"
"""The path below which the pages are served."""

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Media types by the end of the name; files of other kinds are not served."""

_INDEX = "index.html"

_METHODS = ("GET", "HEAD")

_SAFETY = (
    (
        "Content-Security-Policy",
        "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)
"""Headers of each answer here; `X-Content-Type-Options` is on all answers of the service."""


@dataclass(frozen=True, slots=True)
class _File:
    """A file as it is sent.

    Attributes:
        content: All of it.
        headers: What describes it.
        tag: Its `ETag`.
    """

    content: bytes
    headers: tuple[tuple[str, str], ...]
    tag: str


class Pages:
    """The WSGI layer that serves paths below `/ui/` and passes all others to the service."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application
        self._files = _read_files()

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer with a file, or pass the request on."""
        path = environment.get("PATH_INFO", "")
        if path != PREFIX and not path.startswith(f"{PREFIX}/"):
            return self._application(environment, start_response)
        if environment["REQUEST_METHOD"] not in _METHODS:
            allowed = ("Allow", ", ".join(_METHODS))
            return _refuse(start_response, "405 Method Not Allowed", allowed)
        if path == PREFIX:
            # Relative as all links of the pages, so that it holds behind a proxy that adds a path.
            target = f"{PREFIX.removeprefix('/')}/"
            return _refuse(start_response, "308 Permanent Redirect", ("Location", target))
        file = self._files.get(path.removeprefix(f"{PREFIX}/") or _INDEX)
        if file is None:
            return _refuse(start_response, "404 Not Found")
        return _send(environment, start_response, file)


def _read_files() -> Mapping[str, _File]:
    """Return the files by their paths below `static`."""
    folder = Path(__file__).parent / "static"
    return {
        path.relative_to(folder).as_posix(): _file(path.read_bytes(), _TYPES[path.suffix])
        for path in folder.rglob("*")
        if path.suffix in _TYPES
    }


def _file(content: bytes, media_type: str) -> _File:
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = (
        ("Content-Type", media_type),
        ("ETag", tag),
        # A browser asks each time whether its copy is current, so that all files are of one
        # version after an upgrade; the answer is then a 304 without a body.
        ("Cache-Control", "no-cache"),
        *_SAFETY,
    )
    return _File(content, headers, tag)


def _send(
    environment: "WSGIEnvironment", start_response: "StartResponse", file: _File
) -> Iterable[bytes]:
    client_tags = environment.get("HTTP_IF_NONE_MATCH", "")
    if file.tag in client_tags or client_tags.strip() == "*":
        start_response("304 Not Modified", list(file.headers))
        return []
    start_response("200 OK", [*file.headers, ("Content-Length", str(len(file.content)))])
    return [] if environment["REQUEST_METHOD"] == "HEAD" else [file.content]


def _refuse(
    start_response: "StartResponse", status: str, *headers: tuple[str, str]
) -> Iterable[bytes]:
    """Answer with a status and its text."""
    body = f"{status}\n".encode()
    fixed = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    start_response(status, [*fixed, *headers, *_SAFETY])
    return [body]
