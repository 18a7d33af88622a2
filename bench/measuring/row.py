# SPDX-License-Identifier: Apache-2.0
"""Rows of the report, and pairs of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the report.

    Attributes:
        case: World and limit, or kind of load.
        endpoint: Which one.
        median_ms, p95_ms, p99_ms: Latency; None where a rate was measured.
        quiet_ms: Median of the same when nobody writes, measured in turn with it.
        body_bytes: Length of an answer.
        candidates: In one answer.
        per_second: Completed claims, pairs or refreshes; in an open loop, searches that arrive.
        refused: Claims that were not taken meanwhile.
        resident_bytes: Memory of all processes of a service, what they share counted once.
        providers: How many the service held.
        bytes_each: By how much the memory is more than that of the first world, for each provider.
        alone_ms: Median of the same without what the case puts beside it, measured in turn with it.
        orjson_ms: What `orjson.dumps` takes for the same body from ready objects.
    """

    case: str
    endpoint: str
    median_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    quiet_ms: float | None = None
    body_bytes: int | None = None
    candidates: int | None = None
    per_second: float | None = None
    orjson_ms: float | None = None
    alone_ms: float | None = None
    refused: int | None = None
    resident_bytes: int | None = None
    providers: int | None = None
    bytes_each: float | None = None

    @property
    def speed(self) -> str:
        """A rate, or else a latency, in words; empty without either."""
        if self.per_second is not None:
            return f"{self.per_second:.0f}/s"
        return "" if self.median_ms is None else f"{self.median_ms:,.1f} ms"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A row of ours beside another one.

    Attributes:
        ours: What was measured.
        other: What it is compared with; None without a peer.
        note: How the other one came about.
    """

    ours: Row
    other: Row | None = None
    note: str = ""
