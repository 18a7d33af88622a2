# SPDX-License-Identifier: Apache-2.0
"""Rows of figures, and their thresholds (`bench/thresholds.yaml`)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

OURS = "treeclaim"
PEER = "openstack-placement"

MS, RATE, SECONDS, MIB = UNITS = ("ms", "/s", "s", "MiB")
"""Units of figures. A greater figure is better only for a rate."""

TIMES_PEER, TIMES_BASE = RATIOS = ("times the peer", "times the base")

FILE = Path(__file__).with_name("thresholds.yaml")


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of one endpoint.

    Attributes:
        case: The world and the measure.
        endpoint: The name of the endpoint.
        value: A median, a 99th percentile if the case names it, or completed steps a second.
        unit: One of `UNITS`.
        base: The figure of the same service, in turn, without the load of the case: a search without
            writes, claims without a search, `orjson.dumps` of the answer.
    """

    case: str
    endpoint: str
    value: float
    unit: str = MS
    base: float | None = None

    def __str__(self) -> str:
        """Return the figure with its unit."""
        return figure(self.value, self.unit)


def figure(value: float, unit: str) -> str:
    """Format a figure with its unit; without a fraction from 100 on."""
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}".replace(
        " /s", "/s"
    )


def speed_up(ours: Row, theirs: Row) -> float:
    """Return how many times faster our row is; infinite if their rate is 0."""
    numerator, denominator = (ours, theirs) if ours.unit == RATE else (theirs, ours)
    return numerator.value / denominator.value if denominator.value else math.inf


@dataclass(frozen=True, slots=True)
class Threshold:
    """A reviewed bound of a figure.

    Attributes:
        case: The row.
        of: The bounded quantity: the value in one of `UNITS`, or one of `RATIOS`.
        database: The database of the services.
        at_least: The least figure that passes; None for no lower bound.
        below: The least figure that fails; None for no upper bound.
        is_large: Whether only `--large` measures the case.
    """

    case: str
    of: str
    database: str
    at_least: float | None = None
    below: float | None = None
    is_large: bool = False

    def value_of(self, rows: Mapping[str, Row]) -> float | None:
        """Return the bounded figure, given the rows of a case by endpoint; None if it was not measured."""
        ours, peer = rows.get(OURS), rows.get(PEER)
        if ours is None:
            return None
        if self.of == TIMES_PEER:
            return None if peer is None else speed_up(ours, peer)
        if self.of == TIMES_BASE:
            return None if ours.base is None else ours.value / ours.base
        return ours.value

    def is_met(self, value: float) -> bool:
        """Return whether a figure is within the bound."""
        if self.at_least is not None and value < self.at_least:
            return False
        return self.below is None or value < self.below

    def __str__(self) -> str:
        """Return the bound in words."""
        bound = f"below {self.below:g}" if self.at_least is None else f"at least {self.at_least:g}"
        return f"{bound} {self.of}"


def thresholds(database: str, path: Path = FILE) -> list[Threshold]:
    """Read the thresholds of a database."""
    return [
        Threshold(**{"database": database, **entry, "case": case})
        for case, entries in yaml.safe_load(path.read_text()).items()
        for entry in entries
        if entry.get("database", database) == database
    ]


def by_case(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Return the first row of each case and endpoint."""
    cases: dict[str, dict[str, Row]] = {}
    for row in rows:
        cases.setdefault(row.case, {}).setdefault(row.endpoint, row)
    return cases
