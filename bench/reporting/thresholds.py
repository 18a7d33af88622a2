# SPDX-License-Identifier: Apache-2.0
"""The bounds that a benchmark must keep: `bench/thresholds.yaml`."""

from dataclasses import dataclass
from pathlib import Path

import yaml

FILE = Path(__file__).parent.with_name("thresholds.yaml")


@dataclass(frozen=True, slots=True)
class Threshold:
    """A reviewed bound of a figure.

    Attributes:
        case: The row of the benchmark.
        figure: A key of `bench.reporting.report.FIGURES`.
        at_least: The least figure that passes; None for no such bound.
        below: The least figure that fails; None for no such bound.
        database: The database of both services.
        is_large: Whether only `--large` measures the case.
    """

    case: str
    figure: str
    at_least: float | None = None
    below: float | None = None
    database: str = "sqlite"
    is_large: bool = False

    def is_met(self, value: float) -> bool:
        """Return whether a figure keeps the bound."""
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
    return [Threshold(**entry) for entry in yaml.safe_load(path.read_text())["thresholds"]]
