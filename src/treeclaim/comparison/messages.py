# SPDX-License-Identifier: Apache-2.0
"""A request to the Placement API, and an answer, as far as they are compared.

What is unspecified in an answer (the order of sets) or random (ids of requests, times) is not compared.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    Attributes:
        method: The HTTP method.
        path: With the query string.
    """

    method: str
    path: str

    @property
    def route(self) -> str:
        """Return the path without the query."""
        return self.path.partition("?")[0]

    @property
    def query(self) -> str:
        """Return the query, empty where there is none."""
        return self.path.partition("?")[2]


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


SETS = ("resource_providers", "resource_classes", "traits", "aggregates")
PRESENT = "present"
CUSTOM = "CUSTOM_"


def frozen(value: Any) -> str:
    """Return a JSON value as text, the same for equal values."""
    return json.dumps(value, sort_keys=True)


def body(answer: Response) -> Any:
    """Return the body of a success, with sets in sorted order."""
    document = answer.document
    if not isinstance(document, dict):
        return document
    return {
        key: sorted(value, key=frozen) if key in SETS and isinstance(value, list) else value
        for key, value in document.items()
        if key not in {"allocation_requests", "provider_summaries"}
    }


def summaries(document: dict[str, Any]) -> dict[str, Any]:
    """Return the provider summaries, the standard traits before any custom one sorted.

    Their order is that of their arrival when the service first started; custom
    traits have the order of their creation, which all endpoints must keep.
    """
    return {
        uuid: summary | {"traits": _standard_sorted(summary["traits"])}
        if "traits" in summary
        else summary
        for uuid, summary in document["provider_summaries"].items()
    }


def _standard_sorted(traits: list[str]) -> list[str]:
    first = next((place for place, name in enumerate(traits) if name.startswith(CUSTOM)), None)
    return [*sorted(traits[:first]), *(() if first is None else traits[first:])]


def candidates(document: dict[str, Any]) -> Counter[str]:
    """Return the allocation requests as a multiset, mappings and old lists without order."""
    return Counter(frozen(_candidate(entry)) for entry in document["allocation_requests"])


def _candidate(entry: dict[str, Any]) -> dict[str, Any]:
    allocations = entry["allocations"]
    if isinstance(allocations, list):
        allocations = sorted(allocations, key=frozen)
    mappings = {name: sorted(uuids) for name, uuids in entry.get("mappings", {}).items()}
    return {**entry, "allocations": allocations, "mappings": mappings}


def headers(answer: Response) -> dict[str, str | None]:
    """Return the headers that clients depend on; of times only whether they are present."""
    answer_headers = answer.headers
    chosen = {
        name: answer_headers.get(name)
        for name in ("content-type", "openstack-api-version", "cache-control", "www-authenticate")
    }
    chosen["last-modified"] = PRESENT if "last-modified" in answer_headers else None
    chosen["location"] = (
        urlsplit(answer_headers["location"]).path if "location" in answer_headers else None
    )
    chosen["request id"] = PRESENT if "x-openstack-request-id" in answer_headers else None
    allowed = answer_headers.get("allow")
    chosen["allow"] = None if allowed is None else ", ".join(sorted(allowed.split(", ")))
    return chosen


def error(answer: Response) -> dict[str, Any]:
    """Return the error of a JSON error document without its text; empty for other answers."""
    document = answer.document
    if not isinstance(document, dict) or "errors" not in document:
        return {}
    first = dict(document["errors"][0])
    for name in ("detail", "request_id"):
        first[name] = PRESENT if name in first else None
    return first


def detail(answer: Response) -> str:
    """Return the text of a refusal, in whatever representation."""
    document = answer.document
    if isinstance(document, dict) and "errors" in document:
        return str(document["errors"][0].get("detail", ""))
    return answer.text
