# SPDX-License-Identifier: Apache-2.0
"""The service answers over HTTP, in every small world, what a person wrote down."""

import json

import pytest

from tests.conformance.worlds_over_http import answered, build, in_names
from tests.worlds.table import WORLDS

EXTENDED = "placement 1.39, treeclaim 1.0"


@pytest.mark.parametrize("small", WORLDS, ids=lambda small: small.name)
def test_service_returns_the_candidates_of_the_table(fresh_service, small):
    client = fresh_service()
    used = {
        provider.name: amounts
        for provider in small.world.providers
        if (
            amounts := {
                name: inventory.used
                for name, inventory in provider.stock.items()
                if inventory.used
            }
        )
    }
    build(client, small.world, [question.query for question in small.questions], used)
    for question in small.questions:
        body = json.loads(answered(client, question.query, EXTENDED))
        result = in_names(small.world, body, mappings_shown=True)
        assert len(result) == len(question.candidates), question
        assert set(result) == question.candidates, question
