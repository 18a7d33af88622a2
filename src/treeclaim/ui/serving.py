# SPDX-License-Identifier: Apache-2.0
"""Serves the files of the pages below `/ui/` (contract page 99, section 7).

All files are read when the service starts, so no path of a request reaches the file system.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from webob import Response

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

PREFIX = "/ui"
"""The path of the pages."""

_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
"""Media types by suffix; other files are not served."""

_INDEX = "index.html"

_SAFETY = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Headers of each response here; all responses of the service have `X-Content-Type-Options`."""


class Pages:
    """The WSGI layer that serves paths below `/ui/` and passes all others to the service."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application
        folder = Path(__file__).parent / "static"
        self._files = {
            path.relative_to(folder).as_posix(): _load_file(path)
            for path in folder.rglob("*")
            if path.suffix in _TYPES
        }

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Serve a file, or call the service."""
        path = environment.get("PATH_INFO", "")
        if path != PREFIX and not path.startswith(f"{PREFIX}/"):
            return self._application(environment, start_response)
        if environment["REQUEST_METHOD"] not in ("GET", "HEAD"):
            answer = _make_refusal(405, allow="GET, HEAD")
        elif path == PREFIX:
            # Relative, so that it is right behind a proxy that adds a path. WebOb would make it absolute.
            headers = [("Location", "ui/"), ("Content-Length", "0"), *_SAFETY.items()]
            start_response("308 Permanent Redirect", headers)
            return []
        else:
            file = path.removeprefix(f"{PREFIX}/") or _INDEX
            answer = self._files.get(file) or _make_refusal(404)
        chunks: Iterable[bytes] = answer(environment, start_response)
        return chunks


def _load_file(path: Path) -> Response:
    content = path.read_bytes()
    answer = Response(  # type: ignore[no-untyped-call]
        content, content_type=_TYPES[path.suffix], conditional_response=True
    )
    answer.etag = hashlib.sha256(content).hexdigest()[:32]
    # Browsers validate their copies at each use, so that all files have one version after an upgrade.
    answer.cache_control = "no-cache"
    answer.headers.update(_SAFETY)
    return answer


def _make_refusal(status: int, **headers: str) -> Response:
    answer = Response(  # type: ignore[no-untyped-call]
        status=status, content_type="text/plain", **headers
    )
    answer.text = f"{answer.status}\n"
    answer.headers.update(_SAFETY)
    return answer
