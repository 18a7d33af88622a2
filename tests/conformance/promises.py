# SPDX-License-Identifier: Apache-2.0
"""The promises that every response of the service keeps.

Contract page 00, sections 4 and 6 to 9. Each promise is a function from an
`Answer` to the sentences that say how the answer breaks it; an empty list
means that it keeps its promise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
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


def broken(answer: Answer) -> list[str]:
    """Say every promise that `answer` breaks."""
    return [sentence for promise in PROMISES for sentence in promise(answer)]


def request_id(answer: Answer) -> Iterator[str]:
    """Contract page 00, section 7: each answer has the id of its request."""
    value = answer.headers.get("x-openstack-request-id", "")
    if not REQUEST_ID.match(value):
        yield f"x-openstack-request-id is {value!r}"


def nosniff(answer: Answer) -> Iterator[str]:
    """No browser guesses what a body is, whoever has asked for it."""
    value = answer.headers.get("x-content-type-options")
    if value != "nosniff":
        yield f"x-content-type-options is {value!r}"


def negotiated_version(answer: Answer) -> Iterator[str]:
    """Each answer says which version it was made by, and is so cached."""
    if answer.minor is None:
        refused = any(phrase in answer.text for phrase in VERSION_REFUSALS)
        if not (refused or answer.preflight or answer.status == HTTPStatus.UNAUTHORIZED):
            yield "openstack-api-version is missing"
        return
    match = EXACT_VERSION.match(answer.asked_version)
    if match and int(match[1]) != answer.minor:
        yield f"asked for 1.{match[1]}, answered as 1.{answer.minor}"
    if not answer.failed and "openstack-api-version" not in answer.headers.get("vary", "").lower():
        yield "vary does not name openstack-api-version"


def error_document(answer: Answer) -> Iterator[str]:
    """Each error has a document of one shape, and of the right status."""
    if not answer.failed or answer.status == HTTPStatus.UNAUTHORIZED or answer.method == "HEAD":
        return
    if "json" not in answer.headers.get("content-type", ""):
        return
    if answer.headers["content-type"] != "application/json":
        yield f"content-type of an error is {answer.headers['content-type']!r}"
    is_bulk = answer.path.startswith("/treeclaim/")
    if set(answer.document) != {"errors"} or (len(answer.document["errors"]) != 1 and not is_bulk):
        yield "an error document has exactly one error"
        return
    for error in answer.document["errors"]:
        yield from _error(answer, error)


def _error(answer: Answer, error: Mapping[str, Any]) -> Iterator[str]:
    status = error.get("status")
    if status != answer.status and len(answer.document["errors"]) == 1:
        yield f"the document says status {status!r}"
    if error.get("title") != HTTPStatus(int(status)).phrase:
        yield f"the title is {error.get('title')!r}"
    if error.get("request_id") != answer.headers.get("x-openstack-request-id"):
        yield "the document names another request id than the header"
    unknown = set(error) - (EXTENDED_ERROR_MEMBERS if answer.extended else ERROR_MEMBERS)
    if unknown:
        yield f"unknown members {sorted(unknown)}"
    if ("code" in error) != (answer.minor is not None and answer.minor >= CODES_SINCE):
        yield f"code is {error.get('code')!r} at minor version {answer.minor}"
    if answer.minor is not None and {"max_version", "min_version"} & set(error):
        yield "only a refused version has min_version and max_version"
    detail = str(error.get("detail"))
    opening = OPENINGS.get(int(status), "")
    remainder = detail.removeprefix(opening)
    if not detail.startswith(opening) or (
        opening and remainder and not remainder.startswith("\n\n ")
    ):
        yield f"the detail of a {answer.status} begins {detail[:100]!r}"


def content_type(answer: Answer) -> Iterator[str]:
    """A body is JSON; where there is none there is no type either."""
    value = answer.headers.get("content-type")
    if answer.status == HTTPStatus.NO_CONTENT or (
        answer.status == HTTPStatus.CREATED
        and not answer.path.endswith(("/inventories", "/treeclaim/placements"))
    ):
        if value is not None or answer.text:
            yield f"{answer.status} with content-type {value!r} and body {answer.text[:40]!r}"
    elif not answer.failed and not answer.preflight and value != "application/json":
        yield f"content-type is {value!r}"


def cache_headers(answer: Answer) -> Iterator[str]:
    """Contract page 00, section 8: present on these operations from 1.15, elsewhere never."""
    control = answer.headers.get("cache-control")
    modified = answer.headers.get("last-modified")
    if answer.path.startswith("/treeclaim/"):
        if answer.method == "GET" and not answer.failed and control != "no-cache":
            yield f"cache-control is {control!r}"
        return
    if not _cached(answer):
        if control is not None or modified is not None:
            yield f"cache headers {control!r}, {modified!r} where there must be none"
        return
    if control != "no-cache":
        yield f"cache-control is {control!r}"
    if modified is None:
        if not answer.path.endswith("/inventories"):
            yield "last-modified is missing"
    elif not RFC_1123.match(modified) or parsedate_to_datetime(modified) is None:
        yield f"last-modified is {modified!r}"


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


def location(answer: Answer) -> Iterator[str]:
    """Check that a created object, and nothing else, has an absolute URL."""
    value = answer.headers.get("location")
    expected = not answer.failed and _located(answer)
    if (value is not None) != expected:
        yield f"location is {value!r}"
    elif value is not None and not value.startswith(f"{answer.origin}/"):
        yield f"location {value!r} is not an absolute URL below {answer.origin}"


def _located(answer: Answer) -> bool:
    if answer.method == "PUT" and CLASS_PATH.match(answer.path):
        return answer.minor is not None and answer.minor >= ENSURE_CLASS_SINCE
    return any(
        answer.method == method and path.match(answer.path)
        for method, path in WRITES_WITH_LOCATION
    )


PROMISES: tuple[Callable[[Answer], Iterator[str]], ...] = (
    request_id,
    nosniff,
    negotiated_version,
    error_document,
    content_type,
    cache_headers,
    location,
)
