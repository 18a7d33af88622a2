# SPDX-License-Identifier: Apache-2.0
"""Caches of a Forest never show in an answer."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.forest.building import (
    BEGINNING,
    body_of,
    complete,
    forest_of,
    having,
    provider_uuid,
    record,
)
from tests.tiers import examples
from treeclaim.forest.bounds import thresholds
from treeclaim.forest.bounds.cache import ByteCache
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Changes
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.request import (
    BodyForm,
    CandidateRequest,
    ProviderConditions,
    RequestGroup,
    SearchOptions,
    SubtreeList,
)

POOL = provider_uuid(1000)
FAST = ProviderConditions(required=(frozenset({"CUSTOM_FAST"}),))


def world(used):
    """Three hosts with a NUMA node and a device each, and a pool; `used` is of each provider."""
    records = []
    for host in range(3):
        root = 1 + 3 * host
        of = dict(zip(range(root, root + 3), used[3 * host :], strict=False))
        traits = ("CUSTOM_FAST",) if host else ()
        records += [
            record(root, None, root, {"MEMORY_MB": (8, of[root])}, traits, (POOL,)),
            record(root + 1, root, root, {"VCPU": (8, of[root + 1])}),
            record(root + 2, root + 1, root, {"CUSTOM_DEVICE": (2, of[root + 2] // 4)}),
        ]
    records.append(record(10, None, 10, {"DISK_GB": (8, used[9])}, (SHARING_TRAIT,), (POOL,)))
    return records


def requests(amount, limit):
    """Questions of all kinds that may remember: shared, lent, by trait, subtree, isolated, older."""
    device = RequestGroup("_B", {"CUSTOM_DEVICE": 1})
    yield CandidateRequest((RequestGroup("", {"VCPU": amount, "DISK_GB": amount}),), limit=limit)
    yield CandidateRequest((RequestGroup("", {"DISK_GB": amount}),), limit=limit)
    yield CandidateRequest((RequestGroup("_A", {"MEMORY_MB": amount}, FAST), device), limit=limit)
    yield CandidateRequest(
        (RequestGroup("_A", {"VCPU": amount}), device),
        same_subtree=(SubtreeList(("_A", "_B")),),
        limit=limit,
    )
    yield CandidateRequest(
        (RequestGroup("_A", {"VCPU": amount}), RequestGroup("_C", {"VCPU": 1})),
        isolated=frozenset({"_A"}),
        limit=limit,
    )
    yield CandidateRequest((RequestGroup("", {"VCPU": amount}),), limit=limit, nested=False)


def misshapen(records, shape):
    """Records with one thing of their shape changed, or, for None, none."""
    change = {
        "without a trait": lambda one: having(one, traits=()) if one.id == 4 else one,
        "outside of the aggregate": lambda one: having(one, aggregates=()) if one.id == 7 else one,
        "a pool that lends nothing": lambda one: having(one, traits=()) if one.id == 10 else one,
        "without an inventory": lambda one: replace(one, inventories=()) if one.id == 6 else one,
        "without a device": lambda one: None if one.id == 9 else one,
        "a device below the root": lambda one: replace(one, parent_id=1) if one.id == 3 else one,
    }.get(shape, lambda one: one)
    return [one for one in map(change, records) if one is not None]


SHAPES = (
    None,
    "without a trait",
    "outside of the aggregate",
    "a pool that lends nothing",
    "without an inventory",
    "without a device",
    "a device below the root",
)

usage = st.lists(st.integers(0, 8), min_size=10, max_size=10)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(
            usage, st.integers(1, 8), st.sampled_from([None, 1, 2]), st.sampled_from(SHAPES)
        ),
        min_size=2,
        max_size=6,
    )
)
def test_responses_equal_those_of_a_fresh_forest(rounds):
    forest = Forest()
    forest.apply(complete([]))
    known = set()
    for used, amount, limit, shape in rounds:
        records = misshapen(world(used), shape)
        removed = sorted(known - {one.id for one in records})
        known = {one.id for one in records}
        forest.apply(
            Changes(
                cursor=BEGINNING, complete=False, records=records, removed=removed, catalogue=None
            )
        )
        never_asked = forest_of(records)
        for options in (SearchOptions(), SearchOptions(breadth_first=True), SearchOptions(2)):
            for request in requests(amount, limit):
                form = BodyForm(nested=request.nested)
                never_asked.cache.clear()
                expected = body_of(never_asked, request, options, form)
                assert body_of(forest, request, options, form) == expected


DEVICES = CandidateRequest(
    (RequestGroup("_A", {"VCPU": 1}), RequestGroup("_B", {"CUSTOM_DEVICE": 1})),
    same_subtree=(SubtreeList(("_A", "_B")),),
)


def row_of_hosts(used):
    """Hosts with two devices each, of which so many are used."""
    records = []
    for host, devices in enumerate(zip(used[::2], used[1::2], strict=True)):
        root = 1 + 3 * host
        records.append(record(root, None, root, {"VCPU": (8, 0)}))
        records += [
            record(root + number, root, root, {"CUSTOM_DEVICE": (2, amount)})
            for number, amount in enumerate(devices, 1)
        ]
    return records


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 23), st.integers(0, 2)), max_size=12),
    st.integers(1, 12),
    st.sampled_from([1, 3, 64]),
)
def test_cached_candidates_after_claims_equal_a_new_search(claims, limit, spare):
    asked = replace(DEVICES, limit=limit)
    used = [0] * 24
    forest = forest_of(row_of_hosts(used))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thresholds, "SMALLEST_BLOCK", spare)
        for device, amount in claims:
            used[device] = amount
            records = row_of_hosts(used)
            forest.apply(
                Changes(
                    cursor=BEGINNING, complete=False, records=records, removed=[], catalogue=None
                )
            )
            assert body_of(forest, asked) == body_of(forest_of(records), asked)


def test_order_of_resources_distinguishes_requests():
    one, other = (
        CandidateRequest((RequestGroup("", dict.fromkeys(names, 1)),))
        for names in (("VCPU", "DISK_GB"), ("DISK_GB", "VCPU"))
    )
    assert one != other
    assert one == CandidateRequest(one.groups)
    assert one != CandidateRequest(one.groups, limit=1)


def test_cache_evicts_the_oldest_and_clears_on_tree_changes():
    memory = ByteCache(1_700)
    for key in range(3):
        memory.keep(key, np.zeros(10, dtype=np.int8))
    assert memory.find(0) is not None
    memory.keep(3, np.zeros(10, dtype=np.int8))
    assert [key for key in range(4) if memory.find(key) is not None] == [0, 2, 3]
    forest = forest_of(world([0] * 10))
    body_of(forest, next(requests(1, None)))
    kept = forest.cache.get("mine", lambda: np.zeros(1))
    forest.apply(
        Changes(
            cursor=BEGINNING, complete=False, records=world([1] * 10), removed=[], catalogue=None
        )
    )
    assert forest.cache.find("mine") is kept
    forest.apply(
        Changes(cursor=BEGINNING, complete=False, records=[record(20)], removed=[], catalogue=None)
    )
    assert forest.cache.find("mine") is None
