# SPDX-License-Identifier: Apache-2.0
"""Integer programs, minimized by HiGHS with one thread."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import highspy
import numpy as np

_TOLERANCE = 1e-6

_SOLVING_SHARE = 0.6
"""Share of the remaining time for one solver run; ordering the moves and further programs need time too."""

_BYTES_OF_A_FACTOR = 300
"""Bytes of a factor of a row, here and in the solver, which keeps a reduced copy of the program."""


class _Solver(highspy.Highs):
    def enableCallbacks(self) -> None:  # noqa: N802
        """Skip callbacks, because setting one prints a banner on standard output."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The result of a solver run.

    Attributes:
        values: Value of each column in the best solution; None if the solver found no solution.
        bound: Lower bound of the objective; infinite if there is no solution.
        is_optimal: Whether no solution is better than `values`.
    """

    values: tuple[int, ...] | None
    bound: float
    is_optimal: bool


@dataclass(slots=True)
class IntegerProgram:
    """A program whose columns are integers from 0 to an upper bound.

    A column has a cost by unit in the objective, by default 0. `nbytes` estimates the memory while it is solved.
    """

    upper: list[int] = field(default_factory=list)
    costs: dict[int, int] = field(default_factory=dict)
    nbytes: int = 0
    _rows: list[tuple[dict[int, int], float, float]] = field(default_factory=list)

    def add_column(self, upper: int, cost: int = 0) -> int:
        """Add a column, and return its number."""
        self.nbytes += _BYTES_OF_A_FACTOR
        self.upper.append(upper)
        if cost:
            self.costs[len(self.upper) - 1] = cost
        return len(self.upper) - 1

    def add_row(
        self,
        factors: Mapping[int, int],
        *,
        at_least: int | None = None,
        at_most: int | None = None,
    ) -> None:
        """Bound a sum of columns.

        The factors are divided by their greatest common divisor, so that amounts in bytes or megabytes do not
        exceed the solver's tolerance.
        """
        factors = {column: factor for column, factor in factors.items() if factor}
        divisor = math.gcd(*factors.values()) or 1
        self.nbytes += _BYTES_OF_A_FACTOR * (1 + len(factors))
        self._rows.append(
            (
                {column: factor // divisor for column, factor in factors.items()},
                -math.inf if at_least is None else -(-at_least // divisor),
                math.inf if at_most is None else at_most // divisor,
            )
        )

    def solve(self, end: float) -> Solution:
        """Minimize the costs in a share of the time until `end`, by the monotonic clock."""
        if any(
            (not factors and (low > 0 or high < 0)) or low > high
            for factors, low, high in self._rows
        ):
            return Solution(None, math.inf, is_optimal=True)
        if not self.upper:
            return Solution((), 0.0, is_optimal=True)
        seconds = _SOLVING_SHARE * max(end - time.monotonic(), 0.0)
        solver = _Solver()  # type: ignore[no-untyped-call]
        solver.silent()
        options = {"threads": 1, "time_limit": seconds, "mip_rel_gap": 0.0}
        for name, value in options.items():
            solver.setOptionValue(name, value)
        solver.passModel(self._make_model())
        solver.run()
        status, info = solver.getModelStatus(), solver.getInfo()
        if status == highspy.HighsModelStatus.kInfeasible:
            return Solution(None, math.inf, is_optimal=True)
        is_optimal = status == highspy.HighsModelStatus.kOptimal
        bound = info.mip_dual_bound if math.isfinite(info.mip_dual_bound) else -math.inf
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return Solution(None, bound, is_optimal=False)
        values = tuple(round(value) for value in solver.getSolution().col_value)
        if not self._is_solution(values):
            return Solution(None, bound, is_optimal=False)
        return Solution(values, bound, is_optimal)

    def _is_solution(self, values: tuple[int, ...]) -> bool:
        """Check the rows without the solver's tolerance."""
        return all(
            low <= sum(factor * values[column] for column, factor in factors.items()) <= high
            for factors, low, high in self._rows
        )

    def _make_model(self) -> highspy.HighsLp:
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self.upper), len(self._rows)
        costs = np.zeros(len(self.upper))
        costs[list(self.costs)] = list(self.costs.values())
        model.col_cost_ = costs
        model.col_lower_ = np.zeros(len(self.upper))
        model.col_upper_ = np.array(self.upper, dtype=np.float64)
        model.integrality_ = [highspy.HighsVarType.kInteger] * len(self.upper)
        model.row_lower_ = np.array([low for _, low, _ in self._rows])
        model.row_upper_ = np.array([high for _, _, high in self._rows])
        matrix = model.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.start_ = np.cumsum([0, *(len(factors) for factors, _, _ in self._rows)])
        entries = [entry for factors, _, _ in self._rows for entry in factors.items()]
        matrix.index_ = np.array([column for column, _ in entries], dtype=np.int64)
        matrix.value_ = np.array([factor for _, factor in entries], dtype=np.float64)
        return model


def round_up(bound: float) -> int:
    """Round a lower bound up, within the solver's tolerance."""
    return math.ceil(bound - _TOLERANCE * max(1.0, abs(bound)))
