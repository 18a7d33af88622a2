# SPDX-License-Identifier: Apache-2.0
"""The reference finds in every small world what a person wrote down."""

import pytest

from tests.reference.candidates import Reference
from tests.worlds.table import BY_NAME, IDS, QUESTIONS, WORLDS


@pytest.mark.parametrize(("small", "question"), QUESTIONS, ids=IDS)
def test_reference_returns_the_candidates_in_the_table(small, question):
    assert Reference(small.world).candidates(question.request) == question.candidates


def test_worlds_have_unique_names_and_a_feasible_query():
    assert len(BY_NAME) == len(WORLDS)
    for small in WORLDS:
        assert any(question.answer for question in small.questions), small.name
