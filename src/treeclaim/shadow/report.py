# SPDX-License-Identifier: Apache-2.0
"""What was compared, what differs, and how long both took; as text, as JSON and as metrics."""

import threading
from collections import Counter, deque
from collections.abc import Iterator
from enum import StrEnum
from statistics import quantiles
from typing import Any

import prometheus_client

from treeclaim.shadow.comparison import Exchange, differences
from treeclaim.shadow.known_differences import KNOWN

_MOST_TIMES = 10_000
"""Times that are remembered, of the last comparisons."""

_MOST_KINDS = 200
"""Kinds of differences that are told one by one; a kind is a route, the statuses, and what differs."""

_MOST_SHOWN = 300
"""Characters of an example."""


class Verdict(StrEnum):
    """What became of a comparison; a known difference is told by its number instead."""

    EQUAL = "equal"
    UNSETTLED = "unsettled"
    """They differed, and no longer did when both were asked again: somebody was writing."""
    DIFFERENT = "different"


class Report:
    """Counts, from any thread."""

    def __init__(self) -> None:
        self.verdicts: Counter[str] = Counter()
        self.not_compared: Counter[str] = Counter()
        self.kinds: Counter[tuple[str, ...]] = Counter()
        self._examples: dict[tuple[str, ...], str] = {}
        self._times: deque[tuple[float, float]] = deque(maxlen=_MOST_TIMES)
        self._lock = threading.Lock()
        self.registry = prometheus_client.CollectorRegistry()
        self._compared = prometheus_client.Counter(
            "treeclaim_shadow_comparisons",
            "Answers compared, by result; a number is that of a known difference.",
            ["verdict"],
            registry=self.registry,
        )
        self._left_out = prometheus_client.Counter(
            "treeclaim_shadow_not_compared",
            "Requests that were not compared, by the reason.",
            ["reason"],
            registry=self.registry,
        )

    def judged(self, verdict: Verdict | int, exchange: Exchange) -> None:
        """Count a comparison."""
        name = str(verdict)
        self._compared.labels(name).inc()
        with self._lock:
            self.verdicts[name] += 1
            if verdict is not Verdict.DIFFERENT:
                return
            kind = exchange.signature
            if kind in self.kinds or len(self.kinds) < _MOST_KINDS:
                self.kinds[kind] += 1
                self._examples.setdefault(kind, _example(exchange))

    def left_out(self, reason: str) -> None:
        """Count a request that is not compared."""
        self._left_out.labels(reason).inc()
        with self._lock:
            self.not_compared[reason] += 1

    def timed(self, theirs: float, ours: float) -> None:
        """Note how long both took, in seconds."""
        with self._lock:
            self._times.append((theirs, ours))

    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        with self._lock:
            return {
                "compared": self.verdicts.total(),
                "verdicts": dict(self.verdicts),
                "not_compared": dict(self.not_compared),
                "different": [
                    {"kind": list(kind), "count": count, "example": self._examples[kind]}
                    for kind, count in self.kinds.most_common()
                ],
                "milliseconds": {
                    name: _milliseconds([pair[side] for pair in self._times])
                    for side, name in enumerate(("placement", "treeclaim"))
                },
            }

    def lines(self) -> Iterator[str]:
        """Yield it as text for people."""
        told = self.document()
        yield f"{told['compared']} answers were compared."
        for verdict in Verdict:
            yield f"  {self.verdicts[verdict]} {verdict}"
        for known in KNOWN:
            if count := self.verdicts[str(known.number)]:
                yield f"  {count} known difference {known.number}: {known.reason}"
        for reason, count in told["not_compared"].items():
            yield f"{count} were not compared: {reason}"
        for name, times in told["milliseconds"].items():
            if times:
                yield f"{name}: median {times['median']} ms, p99 {times['p99']} ms"
        for row in told["different"]:
            yield f"{row['count']} times different: {' '.join(row['kind'])}"
            yield f"    {row['example']}"


def _example(exchange: Exchange) -> str:
    differing = "; ".join(map(str, differences(exchange)))
    return f"{exchange.request.method} {exchange.request.path}: {differing}"[:_MOST_SHOWN]


def _milliseconds(seconds: list[float]) -> dict[str, float]:
    if len(seconds) < 2:  # noqa: PLR2004 - of a single value there are no quantiles
        return {}
    cuts = quantiles(seconds, n=100)
    return {"median": round(1_000 * cuts[49], 1), "p99": round(1_000 * cuts[98], 1)}
