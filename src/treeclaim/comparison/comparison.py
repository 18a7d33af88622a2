# SPDX-License-Identifier: Apache-2.0
"""Compares two responses to a request."""

import urllib.parse
from collections import Counter
from dataclasses import dataclass
from typing import Any

from treeclaim.comparison import messages
from treeclaim.comparison.messages import Request, Response

MOST_SHOWN = 3
"""Candidates of a difference that are shown."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two responses to a request."""

    what: str
    ours: object
    theirs: object

    def __str__(self) -> str:
        """Write it in a line."""
        return f"{self.what}: ours {self.ours!r}, theirs {self.theirs!r}"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and both answers to it."""

    request: Request
    ours: Response
    theirs: Response

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Return the parameters of the query, decoded, in their order."""
        return urllib.parse.parse_qsl(self.request.query, keep_blank_values=True)

    @property
    def limited(self) -> bool:
        """Tell whether the request had a limit."""
        return any(name == "limit" for name, _ in self.parameters)

    @property
    def signature(self) -> tuple[str, ...]:
        """Return what alike differences have in common."""
        parts = self.request.route.strip("/").split("/")
        route = "/".join(part for number, part in enumerate(parts) if number % 2 == 0)
        kinds = sorted({difference.what.split(" ")[0] for difference in differences(self)})
        outcome = f"{self.ours.status}/{self.theirs.status}"
        return (self.request.method, route, outcome, *kinds)


def differences(exchange: Exchange) -> list[Difference]:
    """Return every point in which the two answers differ; none when they say the same."""
    ours, theirs = exchange.ours, exchange.theirs
    if ours.status != theirs.status:
        summary = (messages.detail(answer)[:300] for answer in (ours, theirs))
        return [Difference("status", (ours.status, next(summary)), (theirs.status, next(summary)))]
    differing = _members("header", messages.headers(ours), messages.headers(theirs))
    differing += _members("error", messages.error(ours), messages.error(theirs))
    if messages.error(ours):
        return differing
    differing += _members("body", messages.body(ours), messages.body(theirs))
    if isinstance(ours.document, dict) and "allocation_requests" in ours.document:
        differing += _candidates(exchange)
    return differing


def _members(what: str, ours: Any, theirs: Any) -> list[Difference]:
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return [] if ours == theirs else [Difference(what, ours, theirs)]
    return [
        Difference(f"{what} {name}", ours.get(name), theirs.get(name))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


def _candidates(exchange: Exchange) -> list[Difference]:
    documents = (exchange.ours.document, exchange.theirs.document)
    ours, theirs = (messages.candidates(document) for document in documents)
    if exchange.limited:
        counts = (ours.total(), theirs.total())
        return [] if counts[0] == counts[1] else [Difference("candidates counted", *counts)]
    differing = []
    if ours != theirs:
        differing.append(
            Difference(
                "candidates",
                *(some_candidates(lacking) for lacking in (ours - theirs, theirs - ours)),
            )
        )
    summaries = (messages.summaries(document) for document in documents)
    return differing + _members("summary", *summaries)


def some_candidates(candidates: Counter[str]) -> str:
    """Return the number of some candidates, and the first of them."""
    shown = "; ".join(list(candidates)[:MOST_SHOWN])
    return f"{candidates.total()} that the other lacks: {shown}"
