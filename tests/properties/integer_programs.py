# SPDX-License-Identifier: Apache-2.0
"""Integer programs, minimised by HiGHS: an optimum that owes nothing to this project's own search."""

from dataclasses import dataclass

import highspy
import numpy as np

INFINITE = highspy.kHighsInf


@dataclass(frozen=True)
class Solution:
    """The result of the solver.

    Attributes:
        best: The value of the best solution; None if none was found.
        bound: A proven bound that no solution is below.
        is_impossible: Whether it is proven that there is no solution.
    """

    best: float | None
    bound: float
    is_impossible: bool

    @property
    def is_optimal(self):
        """Return whether the best value and the bound are equal."""
        return self.best is not None and round(self.best) == round(self.bound)


class Program:
    """A program that is put together: columns are whole numbers from 0 to a bound."""

    def __init__(self):
        self._names = {}
        self._costs = []
        self._most = []
        self._rows = []

    def column(self, name, most, cost=0):
        """Add a variable, known by a name, of which each unit costs something."""
        self._names[name] = len(self._costs)
        self._costs.append(cost)
        self._most.append(most)

    def row(self, factors, least=-INFINITE, most=INFINITE):
        """Let a sum, factors by name, be between two numbers; names of no column are left out."""
        there = [(self._names[name], n) for name, n in factors.items() if name in self._names]
        self._rows.append((least, most, there))

    def solved(self, seconds):
        """The solution with the least costs that is found in so much time."""
        solver = highspy.Highs()
        solver.silent()
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("time_limit", float(seconds))
        solver.passModel(self._model())
        solver.run()
        status, info = solver.getModelStatus(), solver.getInfo()
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        return Solution(
            info.objective_function_value if found else None,
            info.mip_dual_bound,
            status == highspy.HighsModelStatus.kInfeasible,
        )

    def _model(self):
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self._costs), len(self._rows)
        model.col_cost_ = np.array(self._costs, dtype=np.float64)
        model.col_lower_ = np.zeros(len(self._costs))
        model.col_upper_ = np.array(self._most, dtype=np.float64)
        model.integrality_ = [highspy.HighsVarType.kInteger] * len(self._costs)
        model.row_lower_ = np.array([least for least, _, _ in self._rows], dtype=np.float64)
        model.row_upper_ = np.array([most for _, most, _ in self._rows], dtype=np.float64)
        cells = [cell for _, _, there in self._rows for cell in there]
        matrix = model.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.start_ = np.cumsum([0, *(len(there) for _, _, there in self._rows)])
        matrix.index_ = np.array([index for index, _ in cells])
        matrix.value_ = np.array([factor for _, factor in cells], dtype=np.float64)
        return model
