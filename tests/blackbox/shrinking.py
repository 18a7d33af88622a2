# SPDX-License-Identifier: Apache-2.0
"""The few writes that a difference needs (delta debugging, Zeller and Hildebrandt 2002)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.blackbox.episode import Finding, Sides, unexplained
from tests.blackbox.requests import Request

ATTEMPTS = 150


def shrunk(finding: Finding, sides: Sides) -> Finding:
    """The finding with a history from which no single write can be left out.

    Ends early, with what it has by then, after `ATTEMPTS` replays.
    """
    signature = finding.exchange.signature

    def shows(history: Sequence[Request]) -> bool:
        sides.clear()
        for request in history:
            sides.exchange(request)
        assert isinstance(finding.exchange.request, Request)
        exchange = sides.exchange(finding.exchange.request)
        return bool(unexplained(exchange, _ignore)) and exchange.signature == signature

    if not shows(finding.history):
        return finding
    return replace(finding, history=tuple(minimal(finding.history, shows)))


def minimal(
    history: Sequence[Request], shows: Callable[[Sequence[Request]], bool]
) -> Sequence[Request]:
    """The smallest part of `history` found that still `shows` the difference."""
    parts, attempts = 2, 0
    while len(history) >= 1 and attempts < ATTEMPTS:
        size = max(1, len(history) // parts)
        for start in range(0, len(history), size):
            attempts += 1
            rest = [*history[:start], *history[start + size :]]
            if shows(rest):
                history, parts = rest, max(2, parts - 1)
                break
        else:
            if size == 1:
                break
            parts = min(len(history), parts * 2)
    return history


def _ignore(_: str) -> None:
    """Known differences on the way are of no interest."""
