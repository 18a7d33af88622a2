# SPDX-License-Identifier: Apache-2.0
"""What an explanation says of the small worlds is what a person wrote down."""

import pytest

from tests.properties.forest_adapter import candidate_request, forest_of
from tests.worlds.table import BY_NAME, IDS, QUESTIONS
from treeclaim.forest.explain.explain import Focus, explained


@pytest.mark.parametrize(("small", "question"), QUESTIONS, ids=IDS)
def test_a_question_is_called_feasible_where_it_has_candidates(small, question):
    told = explained(forest_of(small.world), candidate_request(question.request), Focus())
    assert told["feasible"] == bool(question.answer)
    assert told["trees"]["considered"] == sum(
        provider.parent is None for provider in small.world.providers
    )
    assert bool(told["advice"]) <= (not question.answer)


def test_what_fits_once_a_host_is_empty_is_told():
    small = BY_NAME["a host in use with picky amounts"]
    (question,) = [one for one in small.questions if one.query == "resources=VCPU:8"]
    told = explained(forest_of(small.world), candidate_request(question.request), Focus())
    assert (told["feasible"], told["fits_when_empty"]) == (False, True)
