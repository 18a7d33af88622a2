# SPDX-License-Identifier: Apache-2.0
"""Compares two responses to a request of the Placement API.

Unspecified parts (the order of sets) and random parts (ids of requests, times) are not compared.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

PRESENT = "present"
"""Stands for a value that differs in any two services."""

_SETS = frozenset({"resource_providers", "resource_classes", "traits", "aggregates"})
_SEARCH = frozenset({"allocation_requests", "provider_summaries"})
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


@dataclass(frozen=True, slots=True)
class Response:
    """A response of an endpoint.

    Attributes:
        status: HTTP status.
        headers: By lower-case name.
        text: The body.
        document: The body as JSON, None where it is none.
    """

    status: int
    headers: Mapping[str, str]
    text: str
    document: Any

    @property
    def error(self) -> dict[str, Any]:
        """Return the error of a JSON error document without its text; empty for other responses."""
        if not isinstance(self.document, dict) or "errors" not in self.document:
            return {}
        first = self.document["errors"][0]
        return {**first, **{name: PRESENT for name in ("detail", "request_id") if name in first}}

    @property
    def detail(self) -> str:
        """Return the text of a refusal, in any representation."""
        if self.error:
            return str(self.document["errors"][0].get("detail", ""))
        return self.text

    @property
    def candidates(self) -> Counter[str]:
        """Return the allocation requests as a multiset of texts."""
        return Counter(_candidate(entry) for entry in self.document["allocation_requests"])

    def parts(self, *, has_limit: bool) -> dict[str, Any]:
        """Return the compared parts by their names.

        Args:
            has_limit: Whether the request had a limit: then candidates are counted, not compared.
        """
        parts: dict[str, Any] = {
            f"header {name}": value for name, value in self._compared_headers()
        }
        if self.error:
            return parts | {f"error {name}": value for name, value in self.error.items()}
        document = self.document
        if not isinstance(document, dict):
            return {**parts, "body": document}
        for name, value in document.items():
            if name not in _SEARCH:
                is_set = name in _SETS and isinstance(value, list)
                parts[f"body {name}"] = Counter(map(as_text, value)) if is_set else value
        if "allocation_requests" not in document:
            return parts
        if has_limit:
            return {**parts, "candidates counted": self.candidates.total()}
        parts["candidates"] = self.candidates
        for uuid, summary in document["provider_summaries"].items():
            parts[f"summary {uuid}"] = {
                name: _sort_standard_traits(value) if name == "traits" else value
                for name, value in summary.items()
            }
        return parts

    def _compared_headers(self) -> Iterator[tuple[str, str | None]]:
        """Yield the headers that clients depend on; of times only whether they are present."""
        for name in ("content-type", "openstack-api-version", "cache-control", "www-authenticate"):
            yield name, self.headers.get(name)
        for name in ("last-modified", "x-openstack-request-id"):
            yield name, PRESENT if name in self.headers else None
        location, allowed = self.headers.get("location"), self.headers.get("allow")
        yield "location", None if location is None else urlsplit(location).path
        yield "allow", None if allowed is None else ", ".join(sorted(allowed.split(", ")))


def as_text(value: Any) -> str:
    """Return a JSON value as text, equal for equal values."""
    return json.dumps(value, sort_keys=True)


def _candidate(entry: Mapping[str, Any]) -> str:
    allocations = entry["allocations"]
    if isinstance(allocations, list):
        allocations = sorted(allocations, key=as_text)
    mappings = {name: sorted(uuids) for name, uuids in entry.get("mappings", {}).items()}
    return as_text({**entry, "allocations": allocations, "mappings": mappings})


def _sort_standard_traits(traits: list[str]) -> list[str]:
    """Sort the traits before the first custom one.

    Standard traits have the order in which the service first started with them; custom traits have the
    order of their creation, which all endpoints must keep.
    """
    custom = (place for place, name in enumerate(traits) if name.startswith("CUSTOM_"))
    first = next(custom, len(traits))
    return [*sorted(traits[:first]), *traits[first:]]


@dataclass(frozen=True, slots=True)
class ResponsePair:
    """A read and both responses to it."""

    read: Read
    ours: Response
    theirs: Response

    @property
    def has_limit(self) -> bool:
        """Return whether the read has a limit."""
        return any(name == "limit" for name, _ in self.read.parameters)

    @property
    def signature(self) -> tuple[str, ...]:
        """Return the common features of similar differences."""
        parts = self.read.route.strip("/").split("/")
        kinds = sorted({name.split(" ")[0] for name in differences(self)})
        return ("GET", "/".join(parts[::2]), f"{self.ours.status}/{self.theirs.status}", *kinds)


def differences(exchange: ResponsePair) -> dict[str, str]:
    """Return every difference of the two responses in words, by the part; none if they are equal."""
    sides = (exchange.ours, exchange.theirs)
    if exchange.ours.status != exchange.theirs.status:
        pairs: list[dict[str, Any]] = [
            {"status": (side.status, side.detail[:_LONGEST_DETAIL])} for side in sides
        ]
    else:
        pairs = [side.parts(has_limit=exchange.has_limit) for side in sides]
    ours, theirs = pairs
    return {
        name: _difference(name, ours.get(name), theirs.get(name))
        for name in dict.fromkeys([*ours, *theirs])
        if ours.get(name) != theirs.get(name)
    }


def _difference(name: str, ours: Any, theirs: Any) -> str:
    if isinstance(ours, Counter) and isinstance(theirs, Counter):
        ours, theirs = _entries_in_words(ours - theirs), _entries_in_words(theirs - ours)
    return f"{name}: ours {ours!r}, theirs {theirs!r}"


def _entries_in_words(entries: Counter[str]) -> str:
    shown = "; ".join(list(entries)[:_MOST_SHOWN])
    return f"{entries.total()} that the other lacks: {shown}"
