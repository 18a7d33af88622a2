# SPDX-License-Identifier: Apache-2.0
"""Compares two responses to a request of the Placement API.

Unspecified parts (the order of lists) and random parts (ids of requests, times) are not compared.
"""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlsplit

PRESENT = "present"
"""Stands for a value that differs in any two services."""

_EQUAL_HEADERS = ("content-type", "openstack-api-version", "cache-control", "www-authenticate")
_TIMES_AND_IDS = ("last-modified", "x-openstack-request-id")

_MOST_SHOWN = 3
_LONGEST_DETAIL = 300


@dataclass(frozen=True, slots=True)
class Read:
    """A GET.

    Attributes:
        path: With the query string.
        version: The microversion, such as 1.39; None for a read of a log that has none.
    """

    path: str
    version: str | None = None

    @property
    def route(self) -> str:
        """Return the path without the query."""
        return self.path.partition("?")[0]

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Return the parameters of the query, decoded, in their order."""
        return parse_qsl(self.path.partition("?")[2], keep_blank_values=True)

    @property
    def has_limit(self) -> bool:
        """Return whether the query has a limit."""
        return any(name == "limit" for name, _ in self.parameters)


@dataclass(frozen=True)
class Response:
    """A response of an endpoint.

    Attributes:
        status: HTTP status.
        headers: By lower-case name.
        text: The body.
        document: The body as JSON, None where it is none.
    """

    status: int
    headers: dict[str, str]
    text: str
    document: Any

    @property
    def detail(self) -> str:
        """Return the text of a refusal, in any representation."""
        if isinstance(self.document, dict) and "errors" in self.document:
            return str(self.document["errors"][0].get("detail", ""))
        return self.text

    @cached_property
    def candidates(self) -> Counter[str]:
        """Return the allocation requests as a multiset of texts."""
        return Counter(map(serialize, _sort_lists(self.document["allocation_requests"])))

    def parts(self, *, has_limit: bool) -> dict[str, Any]:
        """Return the compared parts by their names.

        Args:
            has_limit: Whether the request had a limit: then candidates are counted, not compared.
        """
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
    """Return a JSON value as text, equal for equal values."""
    return json.dumps(value, sort_keys=True)


def _sort_lists(value: Any) -> Any:
    """Return a JSON value with all lists sorted."""
    if isinstance(value, dict):
        return {name: _sort_lists(member) for name, member in value.items()}
    return sorted(map(_sort_lists, value), key=serialize) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class ResponsePair:
    """A read and both responses to it."""

    read: Read
    ours: Response
    theirs: Response

    @property
    def signature(self) -> tuple[str, ...]:
        """Return the common features of similar differences."""
        parts = self.read.route.strip("/").split("/")
        statuses = f"{self.ours.status}/{self.theirs.status}"
        return ("GET", "/".join(parts[::2]), statuses, *sorted(describe_differences(self)))


def describe_differences(exchange: ResponsePair) -> dict[str, str]:
    """Return every difference of the two responses in words, by the part; none if they are equal."""
    sides = (exchange.ours, exchange.theirs)
    if exchange.ours.status != exchange.theirs.status:
        pairs: list[dict[str, Any]] = [
            {"status": (side.status, side.detail[:_LONGEST_DETAIL])} for side in sides
        ]
    else:
        pairs = [side.parts(has_limit=exchange.read.has_limit) for side in sides]
    ours, theirs = pairs
    return {
        name: _describe_difference(name, ours.get(name), theirs.get(name))
        for name in dict.fromkeys([*ours, *theirs])
        if ours.get(name) != theirs.get(name)
    }


def _describe_difference(name: str, ours: Any, theirs: Any) -> str:
    """Return a difference in words; of lists and objects, the entries that the other side lacks."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        ours, theirs = list(ours.items()), list(theirs.items())
    if isinstance(ours, list) and isinstance(theirs, list):
        counts = [Counter(map(serialize, entries)) for entries in (ours, theirs)]
        ours, theirs = (
            f"{missing.total()} that the other lacks: {'; '.join(list(missing)[:_MOST_SHOWN])}"
            for missing in (counts[0] - counts[1], counts[1] - counts[0])
        )
    return f"{name}: ours {ours!r}, theirs {theirs!r}"
