# SPDX-License-Identifier: Apache-2.0
"""A Forest that learns a small world provider by provider is the one that was told all at once."""

from dataclasses import replace

import pytest

from tests.properties.forest_adapter import ask, forest_of, loaded
from tests.worlds.table import WORLDS
from treeclaim.forest.table.forest import Forest


@pytest.mark.parametrize("small", WORLDS, ids=lambda small: small.name)
def test_providers_added_singly_build_the_same_forest(small):
    everything = loaded(small.world)
    grown = Forest()
    grown.apply(replace(everything, records=[]))
    for record in everything.records:
        grown.apply(replace(everything, complete=False, records=[record], catalogue=None))
    for question in small.questions:
        assert ask(grown, question.request) == ask(forest_of(small.world), question.request)


@pytest.mark.parametrize("small", WORLDS, ids=lambda small: small.name)
def test_forest_without_providers_has_no_candidates(small):
    everything = loaded(small.world)
    forest = forest_of(small.world)
    gone = [record.id for record in reversed(everything.records)]
    forest.apply(replace(everything, complete=False, records=[], removed=gone, catalogue=None))
    for question in small.questions:
        assert b'"allocation_requests":[]' in ask(forest, question.request).replace(b" ", b"")
