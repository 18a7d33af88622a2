# SPDX-License-Identifier: Apache-2.0
"""The summaries of answers about the small worlds."""

import pytest

from tests.properties.forest_adapter import Found, ask, forest_of
from tests.reference.candidates import Reference
from tests.worlds.table import BY_NAME, IDS, QUESTIONS


@pytest.mark.parametrize(("small", "question"), QUESTIONS, ids=IDS)
def test_summaries_cover_the_trees_of_the_candidates(small, question):
    result = Found(small.world, ask(forest_of(small.world), question.request))
    expected = Reference(small.world).summaries(question.candidates, question.candidates)
    assert result.summaries.keys() == expected


def test_summary_has_capacity_and_usage_of_each_class():
    small = BY_NAME["a host in use with picky amounts"]
    result = Found(small.world, ask(forest_of(small.world), small.questions[0].request))
    resources = {name: summary["resources"] for name, summary in result.summaries.items()}
    assert resources == {
        "h1": {
            "VCPU": {"capacity": 8, "used": 3},
            "MEMORY_MB": {"capacity": 512, "used": 0},
        },
        "h2": {
            "VCPU": {"capacity": 8, "used": 3},
            "MEMORY_MB": {"capacity": 1024, "used": 0},
        },
    }


def test_summary_has_traits_parent_and_root():
    small = BY_NAME["devices with and without a trait"]
    result = Found(small.world, ask(forest_of(small.world), small.questions[0].request))
    assert result.summaries["fast"]["traits"] == ["CUSTOM_FAST"]
    named = {provider.uuid: provider.name for provider in small.world.providers}
    parents = {
        name: named.get(summary["parent_provider_uuid"])
        for name, summary in result.summaries.items()
    }
    roots = {named[summary["root_provider_uuid"]] for summary in result.summaries.values()}
    assert parents == {"host": None, "fast": "host", "plain": "host"}
    assert roots == {"host"}
