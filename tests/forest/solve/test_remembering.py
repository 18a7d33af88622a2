# SPDX-License-Identifier: Apache-2.0
"""Cached candidates never show in an answer."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.forest.building import (
    body_of,
    forest_of,
    news,
    record,
)
from tests.tiers import examples
from treeclaim.forest.bounds import thresholds
from treeclaim.model.request import (
    CandidateRequest,
    RequestGroup,
    SubtreeList,
)

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
            forest.apply(news(*records))
            assert body_of(forest, asked) == body_of(forest_of(records), asked)
