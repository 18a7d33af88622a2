# SPDX-License-Identifier: Apache-2.0
"""Compares two responses to a read of the Placement API.

The order of lists, which is unspecified, and random values, such as request ids and times, are not compared.
"""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlsplit

PRESENT = "present"
"""Placeholder of a value that differs between any two services."""

_EQUAL_HEADERS = ("content-type", "openstack-api-version", "cache-control", "www-authenticate")
_TIMES_AND_IDS = ("last-modified", "x-openstack-request-id")

_MOST_SHOWN = 3
_LONGEST_DETAIL = 300


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A GET of a path with its query string, at a microversion such as 1.39; None if a log has no microversions."""

    path: str
    version: str | None = None

    @property
    def route(self) -> str:
        """Return the path without the query."""
        return self.path.partition("?")[0]

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Return the decoded parameters of the query in order."""
        return parse_qsl(self.path.partition("?")[2], keep_blank_values=True)

    @property
    def has_limit(self) -> bool:
        """Return whether the query has a limit."""
        return any(name == "limit" for name, _ in self.parameters)


@dataclass(frozen=True)
class Response:
    """A response: headers have lower-case names; `document` is the JSON body, or None."""

    status: int
    headers: dict[str, str]
    text: str
    document: Any

    @property
    def detail(self) -> str:
        """Return the text of an error, from JSON or plain text."""
        if isinstance(self.document, dict) and "errors" in self.document:
            return str(self.document["errors"][0].get("detail", ""))
        return self.text

    @cached_property
    def candidates(self) -> Counter[str]:
        """Return the multiset of allocation requests as texts."""
        return Counter(map(serialize, _sort_lists(self.document["allocation_requests"])))

    def extract_parts(self, *, has_limit: bool) -> dict[str, Any]:
        """Return the compared parts by name; with a limit, the number of candidates replaces them."""
        headers: dict[str, Any] = {name: self.headers.get(name) for name in _EQUAL_HEADERS}
        headers |= {name: name in self.headers for name in _TIMES_AND_IDS}
        headers["location"] = urlsplit(self.headers.get("location", "")).path
        headers["allow"] = sorted(self.headers.get("allow", "").split(", "))
        parts = {f"header {name}": value for name, value in headers.items()}
        document = self.document
        if not isinstance(document, dict):
            return {**parts, "body": document}
        if "errors" in document:
            document = {
                name: PRESENT if name in ("detail", "request_id") else value
                for name, value in document["errors"][0].items()
            }
        elif has_limit and "allocation_requests" in document:
            document = {"count of candidates": len(document["allocation_requests"])}
        return parts | {f"body {name}": _sort_lists(value) for name, value in document.items()}


def serialize(value: Any) -> str:
    """Return the canonical text of a JSON value."""
    return json.dumps(value, sort_keys=True)


def _sort_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sort_lists(member) for name, member in value.items()}
    return sorted(map(_sort_lists, value), key=serialize) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class ResponsePair:
    """A read and both responses to it."""

    request: ReadRequest
    ours: Response
    theirs: Response

    @property
    def signature(self) -> tuple[str, ...]:
        """Return the features by which differences are grouped."""
        parts = self.request.route.strip("/").split("/")
        statuses = f"{self.ours.status}/{self.theirs.status}"
        return ("GET", "/".join(parts[::2]), statuses, *sorted(describe_differences(self)))


def describe_differences(exchange: ResponsePair) -> dict[str, str]:
    """Return the texts of all differences between the two responses, by part."""
    sides = (exchange.ours, exchange.theirs)
    if exchange.ours.status != exchange.theirs.status:
        pairs: list[dict[str, Any]] = [
            {"status": (side.status, side.detail[:_LONGEST_DETAIL])} for side in sides
        ]
    else:
        pairs = [side.extract_parts(has_limit=exchange.request.has_limit) for side in sides]
    ours, theirs = pairs
    return {
        name: _describe_difference(name, ours.get(name), theirs.get(name))
        for name in dict.fromkeys([*ours, *theirs])
        if ours.get(name) != theirs.get(name)
    }


def _describe_difference(name: str, ours: Any, theirs: Any) -> str:
    """Return the text of a difference; for lists and objects, the entries that the other side lacks."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        ours, theirs = list(ours.items()), list(theirs.items())
    if isinstance(ours, list) and isinstance(theirs, list):
        counts = [Counter(map(serialize, entries)) for entries in (ours, theirs)]
        ours, theirs = (
            f"{missing_entries.total()} that the other lacks: {'; '.join(list(missing_entries)[:_MOST_SHOWN])}"
            for missing_entries in (counts[0] - counts[1], counts[1] - counts[0])
        )
    return f"{name}: ours {ours!r}, theirs {theirs!r}"
