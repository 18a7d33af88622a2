# SPDX-License-Identifier: Apache-2.0
"""Asks Treeclaim what Placement was asked, and notes how the answers differ.

What is observed waits in a queue of bounded length and bytes: what does not fit is counted and not
compared. A difference is looked at again, as somebody may have written between the two answers: both
are asked once more, and what still differs counts.
"""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from queue import Full, Queue
from typing import Any

import httpx

from treeclaim.shadow import known_differences
from treeclaim.shadow.comparison import Exchange, differences
from treeclaim.shadow.messages import Request, Response
from treeclaim.shadow.report import Report, Verdict

MOST_WAITING = 500
"""Observations that wait for a thread."""

MOST_BYTES = 1 << 20
"""Bytes of an answer that is compared: with the longest queue half a gigabyte at the very worst."""

_THREADS = 2
_SECONDS = 60.0
"""Seconds that an answer is awaited in the background."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A request that Placement has answered.

    Attributes:
        request: Method and path.
        headers: As the client sent them.
        theirs: Placement's answer.
        seconds: That it took.
    """

    request: Request
    headers: Mapping[str, str]
    theirs: Response
    seconds: float


class Observer:
    """Compares in threads of its own, and never delays an answer."""

    def __init__(self, ours: str, theirs: str, report: Report) -> None:
        """Connect to Treeclaim and, for second looks, to Placement."""
        self._ours = httpx.Client(base_url=ours.rstrip("/"), timeout=_SECONDS)
        self._theirs = httpx.Client(base_url=theirs.rstrip("/"), timeout=_SECONDS)
        self._report = report
        self._waiting: Queue[Observed | None] = Queue(MOST_WAITING)
        self._threads = [
            threading.Thread(target=self._work, name=f"shadow-{number}", daemon=True)
            for number in range(_THREADS)
        ]
        for thread in self._threads:
            thread.start()

    def observe(self, observed: Observed) -> None:
        """Have an answer compared, if there is room; never waits."""
        try:
            self._waiting.put_nowait(observed)
        except Full:
            self._report.left_out("too many at once")

    def close(self) -> None:
        """Compare what waits, and end the threads."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        self._ours.close()
        self._theirs.close()

    def _work(self) -> None:
        while (observed := self._waiting.get()) is not None:
            try:
                self._compare(observed)
            except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
                self._report.left_out(f"Treeclaim was not asked: {type(error).__name__}")

    def _compare(self, observed: Observed) -> None:
        began = time.perf_counter()
        ours = _asked(self._ours, observed)
        seconds = time.perf_counter() - began
        self._report.timed(observed.seconds, seconds)
        exchange = Exchange(observed.request, ours, observed.theirs)
        if differences(exchange):
            exchange = Exchange(
                observed.request, _asked(self._ours, observed), _asked(self._theirs, observed)
            )
            if not differences(exchange):
                self._report.judged(Verdict.UNSETTLED, exchange)
                return
        self._report.judged(_verdict(exchange), exchange)


def _verdict(exchange: Exchange) -> Verdict | int:
    """Return what an exchange shows: a verdict, or the number of a known difference."""
    if not differences(exchange):
        return Verdict.EQUAL
    known = known_differences.recognised(exchange)
    return Verdict.DIFFERENT if known is None else known.number


def _asked(client: httpx.Client, observed: Observed) -> Response:
    request = observed.request
    answer = client.send(
        client.build_request(request.method, request.path, headers=dict(observed.headers))
    )
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return Response(answer.status_code, headers, answer.text, document_of(headers, answer.text))


def document_of(headers: Mapping[str, str], text: str) -> Any:
    """Return a body as JSON, None where it is none."""
    if not headers.get("content-type", "").startswith("application/json"):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
