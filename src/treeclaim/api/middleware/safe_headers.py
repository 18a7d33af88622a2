# SPDX-License-Identifier: Apache-2.0
"""Security headers on every answer, including those of other layers."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from treeclaim.api.middleware.wsgi_types import Headers, Write

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_NO_GUESSING = ("X-Content-Type-Options", "nosniff")


class SafeHeaders:
    """Forbids browsers to sniff the media type of an answer.

    An error may repeat text that an attacker put into a link.
    """

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer with the header."""

        def start(status: str, headers: Headers, exc_info: Any = None, /) -> Write:
            return start_response(status, [*headers, _NO_GUESSING], exc_info)

        return self._application(environment, start)
