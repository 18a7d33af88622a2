# SPDX-License-Identifier: Apache-2.0
"""Arrivals and departures: a file of JSON lines."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treeclaim.replay.problems import problem, quoted, text_of

MOST_EVENTS = 2_000_000
"""Most events of a file."""


@dataclass(frozen=True, slots=True)
class Event:
    """Somebody comes or goes.

    Attributes:
        line: Where it is in the file.
        name: Who.
        query: What it asks for when it comes; None when it goes.
    """

    line: int
    name: str
    query: str | None


@dataclass(frozen=True, slots=True)
class Events:
    """All of a file.

    Attributes:
        source: The file.
        events: In the order in which they happen.
    """

    source: Path
    events: Sequence[Event]


def read_events(file: Path) -> Events:
    """Read a file of events.

    Raises:
        ReplayError: if it cannot be read or understood.
    """
    found: list[tuple[float, Event]] = []
    for number, text in enumerate(text_of(file).split("\n"), 1):
        if text.strip():
            found.append(_event(file, number, text))
        if len(found) > MOST_EVENTS:
            raise problem(file, number, f"these are more than {MOST_EVENTS} events")
    found.sort(key=lambda timed: timed[0])
    events = [event for _, event in found]
    present: set[str] = set()
    for event in events:
        if event.query is None:
            present.discard(event.name)
        elif event.name in present:
            raise problem(file, event.line, f"{quoted(event.name)} comes again before it goes")
        else:
            present.add(event.name)
    return Events(file, events)


def _event(file: Path, line: int, text: str) -> tuple[float, Event]:
    try:
        given: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise problem(file, line, f"this is not JSON: {quoted(text)}") from error
    keys = set(given) if isinstance(given, dict) else set()
    if keys not in ({"at", "place", "query"}, {"at", "release"}):
        raise problem(
            file, line, f"at, place and query, or at and release are expected: {quoted(text)}"
        )
    at = given["at"]
    if not isinstance(at, int | float) or isinstance(at, bool) or not _is_finite(at):
        raise problem(file, line, f"at is a number: {quoted(at)}")
    name = given.get("place", given.get("release"))
    if not isinstance(name, str):
        raise problem(file, line, f"an id is a text: {quoted(name)}")
    query = given.get("query")
    if "place" in keys and not isinstance(query, str):
        raise problem(file, line, f"{quoted(query)} is no query")
    return float(at), Event(line, name, query)


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(float(number))
    except OverflowError:
        return False
