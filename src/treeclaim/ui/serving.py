# SPDX-License-Identifier: Apache-2.0
"""Serves the files of the pages below `/ui/` (contract page 99, section 7).

All files are read when the service starts, and a request can name nothing else: no path of a request
ever reaches the file system.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from webob import Response

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

PREFIX = "/ui"
"""The path below which the pages are served."""

_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
"""Media types by the end of the name; files of other kinds are not served."""

_INDEX = "index.html"

_SAFETY = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Headers of each answer here; `X-Content-Type-Options` is on all answers of the service."""


class Pages:
    """The WSGI layer that serves paths below `/ui/` and passes all others to the service."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application
        folder = Path(__file__).parent / "static"
        self._files = {
            path.relative_to(folder).as_posix(): _file(path)
            for path in folder.rglob("*")
            if path.suffix in _TYPES
        }

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer with a file, or pass the request on."""
        path = environment.get("PATH_INFO", "")
        if path != PREFIX and not path.startswith(f"{PREFIX}/"):
            return self._application(environment, start_response)
        if environment["REQUEST_METHOD"] not in ("GET", "HEAD"):
            answer = _refusal(405, allow="GET, HEAD")
        elif path == PREFIX:
            # Relative as all links of the pages, so that it holds behind a proxy that adds a path. WebOb
            # would make it absolute.
            headers = [("Location", "ui/"), ("Content-Length", "0"), *_SAFETY.items()]
            start_response("308 Permanent Redirect", headers)
            return []
        else:
            file = path.removeprefix(f"{PREFIX}/") or _INDEX
            answer = self._files.get(file) or _refusal(404)
        chunks: Iterable[bytes] = answer(environment, start_response)
        return chunks


def _file(path: Path) -> Response:
    content = path.read_bytes()
    answer = Response(  # type: ignore[no-untyped-call]
        content, content_type=_TYPES[path.suffix], conditional_response=True
    )
    answer.etag = hashlib.sha256(content).hexdigest()[:32]
    # A browser asks each time whether its copy is current, so that all files are of one version after an
    # upgrade; the answer is then a 304 without a body.
    answer.cache_control = "no-cache"
    answer.headers.update(_SAFETY)
    return answer


def _refusal(status: int, **headers: str) -> Response:
    answer = Response(  # type: ignore[no-untyped-call]
        status=status, content_type="text/plain", **headers
    )
    answer.text = f"{answer.status}\n"
    answer.headers.update(_SAFETY)
    return answer
