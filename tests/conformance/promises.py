# SPDX-License-Identifier: Apache-2.0
"""The promises that every response of the service keeps.

Contract page 00, sections 4 and 6 to 9. Each promise is a function that fails for an `Answer` that breaks it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

REQUEST_ID = re.compile(r"^req-[a-fA-F0-9-]+$")
RFC_1123 = re.compile(r"^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$")
VERSION = re.compile(r"^placement 1\.(\d+)(, treeclaim 1\.0)?$")
EXACT_VERSION = re.compile(r"^placement 1\.(\d+)$")
VERSION_REFUSALS = ("Unacceptable version header", "invalid version string")
OPENINGS = {
    400: "The server could not comply with the request since it is either malformed or otherwise "
    "incorrect.",
    404: "The resource could not be found.",
    409: "There was a conflict when trying to complete your request.",
}
ERROR_MEMBERS = {"status", "title", "detail", "code", "request_id", "max_version", "min_version"}
EXTENDED_ERROR_MEMBERS = ERROR_MEMBERS | {"conflict", "consumers", "unplaced", "explanation"}
CODES_SINCE = 23
CACHE_HEADERS_SINCE = 15
WRITES_WITH_CACHE_HEADERS = (
    (
        "PUT",
        re.compile(r"^/resource_providers/[^/]+(/(inventories(/[^/]+)?|aggregates|traits))?$"),
    ),
    ("PUT", re.compile(r"^/traits/[^/]+$")),
    ("POST", re.compile(r"^/resource_providers/[^/]+/inventories$")),
)
WRITES_WITH_LOCATION = (
    ("POST", re.compile(r"^/resource_(providers|classes)$")),
    ("POST", re.compile(r"^/resource_providers/[^/]+/inventories$")),
    ("PUT", re.compile(r"^/traits/[^/]+$")),
)
CLASS_PATH = re.compile(r"^/resource_classes/[^/]+$")
ENSURE_CLASS_SINCE = 7


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, and as much of its request as the promises depend on."""

    method: str
    path: str
    asked_version: str
    status: int
    headers: Mapping[str, str]
    text: str
    document: Any
    origin: str

    @property
    def minor(self) -> int | None:
        """The negotiated minor version; None when negotiation failed or never happened."""
        result = VERSION.match(self.headers.get("openstack-api-version", ""))
        return int(result[1]) if result else None

    @property
    def extended(self) -> bool:
        """Return whether the response has the extension."""
        return "treeclaim" in self.headers.get("openstack-api-version", "")

    @property
    def failed(self) -> bool:
        """Return whether the response is an error."""
        return self.status >= HTTPStatus.BAD_REQUEST

    @property
    def preflight(self) -> bool:
        """Return whether the request is a preflight request of a browser."""
        return self.method == "OPTIONS" and not self.failed


def require_kept(answer: Answer) -> None:
    """Fail if `answer` breaks a promise."""
    for promise in PROMISES:
        promise(answer)


def request_id(answer: Answer) -> None:
    """Contract page 00, section 7: each answer has the id of its request."""
    assert REQUEST_ID.match(answer.headers.get("x-openstack-request-id", ""))


def nosniff(answer: Answer) -> None:
    """Each response forbids browsers to guess the type of its body."""
    assert answer.headers.get("x-content-type-options") == "nosniff"


def negotiated_version(answer: Answer) -> None:
    """Each response names its version, and caches distinguish versions."""
    if answer.minor is None:
        refused = any(phrase in answer.text for phrase in VERSION_REFUSALS)
        assert refused or answer.preflight or answer.status == HTTPStatus.UNAUTHORIZED
        return
    match = EXACT_VERSION.match(answer.asked_version)
    assert not match or int(match[1]) == answer.minor
    assert answer.failed or "openstack-api-version" in answer.headers.get("vary", "").lower()


def error_document(answer: Answer) -> None:
    """Each error has a document of one shape, and of the right status."""
    if not answer.failed or answer.status == HTTPStatus.UNAUTHORIZED or answer.method == "HEAD":
        return
    if "json" not in answer.headers.get("content-type", ""):
        return
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.document) == {"errors"}
    errors = answer.document["errors"]
    assert len(errors) == 1 or answer.path.startswith("/treeclaim/")
    for error in errors:
        assert error["status"] == answer.status or len(errors) > 1
        _require_error(answer, error)


def _require_error(answer: Answer, error: Mapping[str, Any]) -> None:
    status = HTTPStatus(error["status"])
    assert error["title"] == status.phrase
    assert error["request_id"] == answer.headers.get("x-openstack-request-id")
    assert set(error) <= (EXTENDED_ERROR_MEMBERS if answer.extended else ERROR_MEMBERS)
    assert ("code" in error) == (answer.minor is not None and answer.minor >= CODES_SINCE)
    if answer.minor is not None:
        assert not {"max_version", "min_version"} & set(error), "only of a refused version"
    opening = OPENINGS.get(status, "")
    assert error["detail"].startswith(opening)
    remainder = error["detail"].removeprefix(opening)
    assert not opening or not remainder or remainder.startswith("\n\n ")


def content_type(answer: Answer) -> None:
    """A body is JSON; where there is none there is no type either."""
    value = answer.headers.get("content-type")
    if answer.status == HTTPStatus.NO_CONTENT or (
        answer.status == HTTPStatus.CREATED
        and not answer.path.endswith(("/inventories", "/treeclaim/placements"))
    ):
        assert value is None
        assert not answer.text
    elif not answer.failed and not answer.preflight:
        assert value == "application/json"


def cache_headers(answer: Answer) -> None:
    """Contract page 00, section 8: present on these operations from 1.15, elsewhere never."""
    control = answer.headers.get("cache-control")
    modified = answer.headers.get("last-modified")
    if answer.path.startswith("/treeclaim/"):
        assert answer.method != "GET" or answer.failed or control == "no-cache"
    elif not _cached(answer):
        assert (control, modified) == (None, None)
    else:
        assert control == "no-cache"
        if modified is None:
            assert answer.path.endswith("/inventories")
        else:
            assert RFC_1123.match(modified)
            parsedate_to_datetime(modified)


def _cached(answer: Answer) -> bool:
    if answer.failed or answer.minor is None or answer.minor < CACHE_HEADERS_SINCE:
        return False
    if answer.method == "GET":
        return True
    if answer.method == "POST" and answer.path == "/resource_providers":
        return answer.status == HTTPStatus.OK
    return any(
        answer.method == method and path.match(answer.path)
        for method, path in WRITES_WITH_CACHE_HEADERS
    )


def location(answer: Answer) -> None:
    """Check that a created object, and nothing else, has an absolute URL."""
    value = answer.headers.get("location")
    assert (value is not None) == (not answer.failed and _located(answer))
    assert value is None or value.startswith(f"{answer.origin}/")


def _located(answer: Answer) -> bool:
    if answer.method == "PUT" and CLASS_PATH.match(answer.path):
        return answer.minor is not None and answer.minor >= ENSURE_CLASS_SINCE
    return any(
        answer.method == method and path.match(answer.path)
        for method, path in WRITES_WITH_LOCATION
    )


PROMISES: tuple[Callable[[Answer], None], ...] = (
    request_id,
    nosniff,
    negotiated_version,
    error_document,
    content_type,
    cache_headers,
    location,
)
