# SPDX-License-Identifier: Apache-2.0
"""Files of a replay: arrivals and departures as JSON lines, and queries with the mixes that they name."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.resources.candidates.operations import request_of
from treeclaim.api.resources.candidates.order_parameters import with_mixes
from treeclaim.model.extension.mixes import MOST_REQUESTS, MOST_WEIGHT, Mix, MixRequest
from treeclaim.model.microversions import NEWEST
from treeclaim.model.request import CandidateRequest
from treeclaim.model.texts import one_line

MOST_EVENTS = 2_000_000
"""Most events of a file."""

_MOST_BYTES = 512 * 1024 * 1024
"""Bytes of a file: some millions of events."""

_LONGEST = 200
"""Characters that are quoted of a file."""


@dataclass(frozen=True, slots=True)
class Event:
    """A consumer arrives or leaves.

    Attributes:
        line: Where it is in the file.
        name: The consumer.
        query: What it requests when it arrives; None when it leaves.
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
    timed_events: list[tuple[float, Event]] = []
    for number, text in enumerate(text_of(file).split("\n"), 1):
        if text.strip():
            timed_events.append(_event(file, number, text))
        if len(timed_events) > MOST_EVENTS:
            raise problem(file, number, f"these are more than {MOST_EVENTS} events")
    timed_events.sort(key=lambda timed: timed[0])
    events = [event for _, event in timed_events]
    present: set[str] = set()
    for event in events:
        if event.query is None:
            present.discard(event.name)
        elif event.name in present:
            raise problem(
                file, event.line, f"{quoted(event.name)} arrives again before it is released"
            )
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
        raise problem(file, line, f"{quoted(query)} is not a query")
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
        ReplayError: if it cannot be read, is not UTF-8, or is too large.
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


_VERSION = NEWEST

_MOST_GROUPS = 128

_LONGEST_QUERY = 256 * 1024

USUAL = "none"
"""Stands for the usual order of candidates."""


def parsed(
    where: tuple[Path | str, int], query: object, order: str | None = None
) -> CandidateRequest:
    """Read a query of a file.

    Args:
        where: The file and the line.
        query: Its text, as it stands there.
        order: What `order_by` is to be instead of what the query says; None for that.

    Raises:
        ReplayError: if it is none, or cannot be ordered so.
    """
    if not isinstance(query, str) or len(query) > _LONGEST_QUERY:
        raise problem(*where, f"{quoted(query)} is not a query")
    text = query
    if order is not None:
        kept = [part for part in query.split("&") if not part.startswith("order_by=")]
        given = [] if order == USUAL else [f"order_by={quote(order, safe=':,*')}"]
        text = "&".join([*kept, *given])
    try:
        request = request_of(text, _VERSION, _MOST_GROUPS)
    except ApiError as error:
        raise problem(*where, error.detail) from error
    if request.from_holds:
        raise problem(*where, "there are no holds to draw from (from_holds)")
    if not any(group.resources for group in request.groups):
        raise problem(*where, "it asks for no resources")
    return request


def with_mix(
    where: tuple[Path | str, int], request: CandidateRequest, mix: Mix | None
) -> CandidateRequest:
    """Return a request that knows the mix which its order may name.

    Raises:
        ReplayError: if it names another one, or a class that no request of it asks for.
    """
    try:
        return with_mixes(request, {} if mix is None else {mix.name: mix})
    except ApiError as error:
        raise problem(*where, error.detail) from error


def mix_of(file: Path) -> Mix:
    """Read the body of `PUT /treeclaim/mixes/{name}`; the mix is named as the file.

    Raises:
        ReplayError: if it is none.
    """
    try:
        document = json.loads(text_of(file))
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 0)
        raise problem(file, line, "this is not JSON") from error
    requests = document.get("requests") if isinstance(document, dict) else None
    if not isinstance(requests, dict) or not 0 < len(requests) <= MOST_REQUESTS:
        raise problem(
            file, 0, f"a member 'requests' with 1 to {MOST_REQUESTS} requests is expected"
        )
    return Mix(file.stem, {name: _asked(file, name, given) for name, given in requests.items()})


def _asked(file: Path, name: str, given: Any) -> MixRequest:
    members: Mapping[str, Any] = given if isinstance(given, dict) else {}
    weight = members.get("weight")
    if not isinstance(weight, int) or isinstance(weight, bool) or not 0 < weight <= MOST_WEIGHT:
        raise problem(file, 0, f"request {quoted(name)}: weight is 1 to {MOST_WEIGHT}")
    request = parsed((file, 0), members.get("query"))
    if request.order is not None or request.limit is not None:
        raise problem(
            file, 0, f"request {quoted(name)}: a mix has no order_by, preferred and limit"
        )
    return MixRequest(request, weight)
