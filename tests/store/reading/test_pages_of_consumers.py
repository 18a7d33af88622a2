# SPDX-License-Identifier: Apache-2.0
"""Filters of consumers and holds, and sums of usage, on each database."""

from datetime import timedelta
from uuid import UUID

import pytest

from tests.store.hosts import create_host, make_claim, utc_now
from treeclaim.model.claim import HoldTerms
from treeclaim.model.names import UNKNOWN_TYPE
from treeclaim.model.parts import AGGREGATES
from treeclaim.model.request import ProviderConditions
from treeclaim.store.operations.providers.entries import write_part
from treeclaim.store.reading.consumers import ConsumerFilter, load_consumer_page
from treeclaim.store.reading.holds import HoldFilter, load_hold_page
from treeclaim.store.reading.usages import load_usages

ROOT, CHILD, OTHER, FIRST, SECOND, HOLD, RACK = (str(UUID(int=number)) for number in range(1, 8))
EVERYBODY = [FIRST, SECOND, HOLD]
IN_RACK = ProviderConditions(member_of=(frozenset({RACK}), frozenset({RACK, ROOT})))
NOT_IN_RACK = ProviderConditions(forbidden_aggregates=frozenset({RACK}))
ANY_CONSUMER = ConsumerFilter((), (), ProviderConditions(), (), (), None, None, None, None, "", 10)
ANY_HOLD = HoldFilter(None, None, (), (), None, "", 10)
SOON = (utc_now() + timedelta(hours=1)).replace(microsecond=0)


@pytest.fixture
def filled(store):
    """Two trees with an instance each, and a hold of another project in the second tree."""
    create_host(store, 8, uuid=ROOT)
    create_host(store, 8, uuid=CHILD, parent=ROOT)
    create_host(store, 8, uuid=OTHER)
    store.write(write_part, OTHER, AGGREGATES, {RACK})
    store.replace_allocations([make_claim(FIRST, {CHILD: 1})])
    store.replace_allocations([make_claim(SECOND, {OTHER: 2}, user_id="v")])
    terms = HoldTerms(until=SOON, returns=True, projects=("p",))
    store.replace_allocations([make_claim(HOLD, {OTHER: 3}, hold=terms, project_id="q")])
    return store


def list_uuids(store, load, any_filter, **fields):
    """Return the uuids of a page, and the last uuid before the next page."""
    values = {name: getattr(any_filter, name) for name in any_filter.__slots__}
    consumers, following = store.read(load, type(any_filter)(**values | fields))
    return [consumer["uuid"] for consumer in consumers], following


def test_consumers_pass_all_filters(filled):
    for fields, expected in (
        ({}, EVERYBODY),
        ({"limit": 2}, EVERYBODY[:2]),
        ({"after": FIRST}, EVERYBODY[1:]),
        ({"provider": [CHILD, ROOT]}, [FIRST]),
        ({"in_tree": [ROOT]}, [FIRST]),
        ({"in_tree": [ROOT, OTHER], "provider": [OTHER]}, [SECOND, HOLD]),
        ({"member_of": IN_RACK}, [SECOND, HOLD]),
        ({"member_of": NOT_IN_RACK}, [FIRST]),
        ({"resource_class": ["VCPU", "PCPU"]}, EVERYBODY),
        ({"resource_class": ["PCPU"]}, []),
        ({"consumer": [SECOND.upper(), ROOT]}, [SECOND]),
        ({"project_id": "q"}, [HOLD]),
        ({"project_id": ""}, []),
        ({"user_id": "v"}, [SECOND]),
        ({"consumer_type": "INSTANCE"}, [FIRST, SECOND]),
        ({"consumer_type": UNKNOWN_TYPE}, []),
        ({"created_since": SOON}, []),
        ({"created_since": SOON - timedelta(hours=2), "project_id": "p"}, [FIRST, SECOND]),
    ):
        page, following = list_uuids(filled, load_consumer_page, ANY_CONSUMER, **fields)
        assert (fields, page) == (fields, expected)
        assert following == (SECOND if "limit" in fields else None)


def test_holds_pass_all_filters(filled):
    for fields, is_listed in (
        ({}, True),
        ({"project_id": "q"}, True),
        ({"project_id": "p"}, False),
        ({"drawable_by": "p"}, True),
        ({"drawable_by": "q"}, True),
        ({"drawable_by": "r"}, False),
        ({"provider": [OTHER]}, True),
        ({"provider": [ROOT, CHILD]}, False),
        ({"in_tree": [OTHER, ROOT]}, True),
        ({"in_tree": [ROOT]}, False),
        ({"until_before": SOON + timedelta(seconds=1)}, True),
        ({"until_before": SOON}, False),
        ({"after": HOLD}, False),
    ):
        page, _ = list_uuids(filled, load_hold_page, ANY_HOLD, **fields)
        assert (fields, page) == (fields, [HOLD] if is_listed else [])


def test_usages_are_those_of_project_and_user(filled):
    assert filled.read(load_usages, "p", None) == {"INSTANCE": {"consumer_count": 2, "VCPU": 3}}
    assert filled.read(load_usages, "p", "v") == {"INSTANCE": {"consumer_count": 1, "VCPU": 2}}
    assert filled.read(load_usages, "p", "w") == {}
