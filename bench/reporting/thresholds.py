# SPDX-License-Identifier: Apache-2.0
"""What a benchmark must reach, beside what was observed: `bench/thresholds.yaml`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

FILE = Path(__file__).parent.with_name("thresholds.yaml")
_HEADER = "# SPDX-License-Identifier: Apache-2.0\n"


@dataclass(frozen=True, slots=True)
class Observed:
    """What earlier runs measured.

    Attributes:
        figures: One of each run, oldest first.
    """

    figures: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Return the mean of all runs."""
        return fmean(self.figures)

    @property
    def spread(self) -> float:
        """Return how far apart the runs are."""
        return max(self.figures) - min(self.figures)

    def __str__(self) -> str:
        """Return mean and spread."""
        return f"{self.mean:.1f}, spread {self.spread:.1f}, {len(self.figures)} runs"


@dataclass(frozen=True, slots=True)
class Threshold:
    """A reviewed bound of a figure.

    Attributes:
        case: The row of the benchmark that it is about.
        figure: A key of `bench.reporting.report.FIGURES`.
        at_least: What the figure may not be below; None for no such bound.
        below: What the figure must be below; None for no such bound.
        observed: What earlier runs measured; None where none did.
        database: The database that both services are on.
        only_full: Whether a short run leaves the case out.
    """

    case: str
    figure: str
    at_least: float | None = None
    below: float | None = None
    observed: Observed | None = None
    database: str = "sqlite"
    only_full: bool = False

    def is_met(self, value: float) -> bool:
        """Tell whether a figure keeps the bound."""
        if self.at_least is not None and value < self.at_least:
            return False
        return self.below is None or value < self.below

    def __str__(self) -> str:
        """Return the bound in words."""
        if self.at_least is not None:
            return f"at least {self.at_least:g} {self.figure}"
        return f"below {self.below:g} {self.figure}"


def read(path: Path = FILE) -> list[Threshold]:
    """Read all thresholds."""
    return [_threshold(entry) for entry in yaml.safe_load(path.read_text())["thresholds"]]


def _threshold(entry: Mapping[str, Any]) -> Threshold:
    observed = entry.get("observed")
    return Threshold(
        **{**entry, "observed": Observed(tuple(observed["runs"])) if observed else None}
    )


def observing(threshold: Threshold, value: float | None) -> Threshold:
    """Return a threshold with a run's figure among those observed."""
    if value is None:
        return threshold
    before = threshold.observed.figures if threshold.observed else ()
    return replace(threshold, observed=Observed((*before, round(value, 2))))


def observe(
    value_of: Callable[[Threshold], float | None],
    judged: Sequence[Threshold],
    path: Path = FILE,
) -> None:
    """Note a run's figures of the thresholds that it could judge in the file."""
    write(
        [
            observing(threshold, value_of(threshold)) if threshold in judged else threshold
            for threshold in read(path)
        ],
        path,
    )


def write(thresholds: Sequence[Threshold], path: Path = FILE) -> None:
    """Write all thresholds, with mean and spread for who reads the file."""
    entries = []
    for threshold in thresholds:
        entry: dict[str, Any] = {"case": threshold.case, "figure": threshold.figure}
        if threshold.database != "sqlite":
            entry["database"] = threshold.database
        if threshold.only_full:
            entry["only_full"] = True
        if threshold.at_least is not None:
            entry["at_least"] = threshold.at_least
        if threshold.below is not None:
            entry["below"] = threshold.below
        if threshold.observed is not None:
            entry["observed"] = {
                "mean": round(threshold.observed.mean, 2),
                "spread": round(threshold.observed.spread, 2),
                "runs": list(threshold.observed.figures),
            }
        entries.append(entry)
    text = yaml.safe_dump({"thresholds": entries}, sort_keys=False, default_flow_style=None)
    path.write_text(_HEADER + text)
