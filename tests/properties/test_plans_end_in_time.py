# SPDX-License-Identifier: Apache-2.0
"""A plan that runs out of time returns the best one so far (contract page 101, before section 1)."""

import pytest

from tests.forest.building import EndingBudget
from tests.properties.test_moves_are_the_best_of_all_plans import (
    WORLDS,
    answer_to,
    assert_proofs_are_true,
    carried_out,
    model_of,
    question_of,
)
from treeclaim.forest.planning.moves import move_model, planner

ENDS = 6
"""Number of tested deadlines, spread over the clock readings of a plan."""


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
    unlimited = EndingBudget()
    answer_to(question, unlimited)
    looks = unlimited.checks
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
