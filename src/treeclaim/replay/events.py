# SPDX-License-Identifier: Apache-2.0
"""Arrivals and departures: a file of JSON lines; and files that cannot be replayed."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treeclaim.model.texts import one_line

MOST_EVENTS = 2_000_000
"""Most events of a file."""

_MOST_BYTES = 512 * 1024 * 1024
"""Bytes of a file: some millions of events."""

_LONGEST = 200
"""Characters that are quoted of a file."""


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


class ReplayError(Exception):
    """Something cannot be replayed; the message names the file, and the line where there is one."""


def problem(file: Path | str, line: int, text: str) -> ReplayError:
    """Return the error of a line of a file; 0 where it is about the whole."""
    where = f"{file}:{line}" if line else f"{file}"
    return ReplayError(f"{one_line(where, longest=_LONGEST)}: {text}")


def quoted(text: object) -> str:
    """Return a text of a file as a message may repeat it: cut, and in one line."""
    return repr(one_line(str(text), longest=_LONGEST))


def text_of(file: Path) -> str:
    """Read a file.

    Raises:
        ReplayError: if it cannot be read, is no UTF-8, or is too large.
    """
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise problem(file, 0, f"it cannot be read: {reason}") from error
    if len(content) > _MOST_BYTES:
        raise problem(file, 0, f"it is longer than {_MOST_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise problem(file, line, "this is not UTF-8") from error
