# SPDX-License-Identifier: Apache-2.0
"""Files of a replay: arrivals and departures as JSON lines, and queries with the mixes that they name."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.resources.candidates.order_parameters import with_mixes
from treeclaim.api.resources.candidates.parameters import request_of
from treeclaim.model.extension.mixes import Mix, MixRequest
from treeclaim.model.microversions import NEWEST
from treeclaim.model.request import CandidateRequest


class ReplayError(Exception):
    """Something cannot be replayed; the message names the file, and the line where there is one."""


@dataclass(frozen=True, slots=True)
class Event:
    """A consumer arrives or leaves.

    Attributes:
        line: The line in the file.
        name: The consumer.
        query: The query of an arrival; None when the consumer leaves.
    """

    line: int
    name: str
    query: str | None


@dataclass(frozen=True, slots=True)
class Events:
    """The events of a file, in the order in which they happen."""

    source: Path
    events: Sequence[Event]


def problem(file: Path | str, line: int, text: str) -> ReplayError:
    """Return the error of a line of a file; 0 where it is about the whole."""
    return ReplayError(f"{file}:{line}: {text}" if line else f"{file}: {text}")


def text_of(file: Path) -> str:
    """Read a file.

    Raises:
        ReplayError: if it cannot be read, or is not UTF-8.
    """
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise problem(file, 0, f"it cannot be read: {error}") from error


def read_events(file: Path) -> Events:
    """Read a file of events.

    Raises:
        ReplayError: if it cannot be read or understood.
    """
    lines = text_of(file).split("\n")
    timed = [_event(file, line, text) for line, text in enumerate(lines, 1) if text.strip()]
    events = [event for _, event in sorted(timed, key=lambda pair: pair[0])]
    present: set[str] = set()
    for event in events:
        if event.query is None:
            present.discard(event.name)
        elif event.name in present:
            raise problem(file, event.line, f"{event.name!r} arrives again before it is released")
        else:
            present.add(event.name)
    return Events(file, events)


def _event(file: Path, line: int, text: str) -> tuple[float, Event]:
    try:
        members = json.loads(text)
        name = members["place"] if "query" in members else members["release"]
        return float(members["at"]), Event(line, name, members.get("query"))
    except (ValueError, LookupError, TypeError) as error:
        form = '{"at": 1, "place": "ID", "query": "…"} or {"at": 2, "release": "ID"}'
        raise problem(file, line, f"{text[:200]!r} is not of the form {form}") from error


def read_query(
    where: tuple[Path | str, int], query: str, order: str | None = None, mix: Mix | None = None
) -> CandidateRequest:
    """Read a query of a file.

    Args:
        where: The file and the line.
        query: The text of the query.
        order: `order_by` instead of that of the query (`none` for the default order); None to keep it.
        mix: The mix that the order may name.

    Raises:
        ReplayError: if the query or its order cannot be read, or the query has no resources.
    """
    text = query
    if order is not None:
        kept = [part for part in query.split("&") if not part.startswith("order_by=")]
        terms = [] if order == "none" else [f"order_by={quote(order, safe=':,*')}"]
        text = "&".join([*kept, *terms])
    try:
        request = request_of(text, NEWEST, 128)
        if not any(group.resources for group in request.groups):
            raise problem(*where, "it requests no resources")
        return with_mixes(request, {} if mix is None else {mix.name: mix})
    except ApiError as error:
        raise problem(*where, error.detail) from error


def read_mix(file: Path) -> Mix:
    """Read the body of `PUT /treeclaim/mixes/{name}`; the mix is named as the file.

    Raises:
        ReplayError: if it is none.
    """
    try:
        requests = json.loads(text_of(file))["requests"]
        mix = {
            name: MixRequest(read_query((file, 0), members["query"]), int(members["weight"]))
            for name, members in requests.items()
        }
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        form = '{"requests": {"NAME": {"query": "…", "weight": 1}}}'
        raise problem(file, 0, f"it is not of the form {form}: {error}") from error
    return Mix(file.stem, mix)
