# SPDX-License-Identifier: Apache-2.0
"""Wherever the time is over, the plan found by then is told (contract page 101, before section 1)."""

from contextlib import contextmanager

import pytest

from tests.properties.test_moves_are_the_best_of_all_plans import (
    WORLDS,
    answer_to,
    assert_proofs_are_true,
    carried_out,
    model_of,
    question_of,
)
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.planning.moves import move_model, planner
from treeclaim.model.errors import SearchGivenUpError

ENDS = 6
"""Looks at the clock, of all that a plan takes, at which its time is over."""


class EndingBudget(Budget):
    """A budget whose time is over after some looks, wherever something may end."""

    def __init__(self, looks):
        super().__init__()
        self.looks = 0
        self._most = looks
        self._depth = 0

    def check(self):
        if self._depth:
            self.looks += 1
            if self._most is not None and self.looks > self._most:
                raise SearchGivenUpError(0)

    @contextmanager
    def ending(self, at):
        self._depth += at is not None
        try:
            with super().ending(at):
                yield
        finally:
            self._depth -= at is not None


def looks_of(question):
    """Return how often a plan looks at the clock if nothing ends it."""
    budget = EndingBudget(None)
    answer_to(question, budget)
    return budget.looks


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("seed", range(WORLDS))
def test_plan_is_valid_and_within_its_bounds_wherever_it_ends(seed, is_large, monkeypatch):
    if is_large:
        monkeypatch.setattr(planner, "PROMISING_TREES", (1, 2))
        monkeypatch.setattr(planner, "TREES_OF_A_PART", 1)
        monkeypatch.setattr(move_model, "MOST_COLUMNS", 12)
        monkeypatch.setattr(move_model, "MOST_COLUMNS_OF_KEEP", 20)
    question = question_of(seed)
    truth = model_of(question)
    best = truth.best()
    looks = looks_of(question)
    for end in [*sorted({looks * part // ENDS for part in range(ENDS)} - {looks}), None]:
        answer = answer_to(question, EndingBudget(end))
        moved = carried_out(question, truth, answer)
        assert len(moved) <= question.max_moves
        assert end is None or not answer["complete"]
        value = truth.value(moved)
        assert value >= truth.value({})
        if not question.mix and end is None:
            assert answer["reached"] == truth.reached(value)
        assert not answer["reached"] or question.mix or truth.reached(value)
        if best is not None:
            assert_proofs_are_true(question, truth, answer, best, (value, len(moved)))
