# SPDX-License-Identifier: Apache-2.0
"""The reference finds in every small world what a person wrote down."""

import pytest

from tests.reference.candidates import Reference
from tests.worlds.table import BY_NAME, IDS, QUESTIONS, WORLDS


@pytest.mark.parametrize(("small", "question"), QUESTIONS, ids=IDS)
def test_the_formal_definition_gives_the_answer_in_the_table(small, question):
    assert Reference(small.world).candidates(question.request) == question.candidates


def test_every_world_has_a_name_of_its_own_and_a_question_that_has_candidates():
    assert len(BY_NAME) == len(WORLDS)
    for small in WORLDS:
        assert any(question.answer for question in small.questions), small.name
