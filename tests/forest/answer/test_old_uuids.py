# SPDX-License-Identifier: Apache-2.0
"""Candidates show UUIDs of any length, as old databases have them."""

import pytest

from tests.forest.building import answer_of, forest_of, provider_uuid, record
from treeclaim.model.request import CandidateRequest, RequestGroup

OLD = ("short", "0" * 31 + "1", provider_uuid(3))


@pytest.mark.parametrize("groups", [("",), ("1", "2")], ids=["alike", "of several patterns"])
def test_candidates_keep_the_uuids_of_the_database(groups):
    records = [
        record(number, None if number == 1 else 1, 1, {"VCPU": 8}, uuid=uuid)
        for number, uuid in enumerate(OLD, 1)
    ]
    request = CandidateRequest(
        tuple(RequestGroup(suffix=suffix, resources={"VCPU": 1}) for suffix in groups)
    )
    answer = answer_of(forest_of(records), request)
    named = {
        uuid
        for allocation_request in answer["allocation_requests"]
        for uuid in allocation_request["allocations"]
    }
    mapped = {
        uuid
        for allocation_request in answer["allocation_requests"]
        for uuids in allocation_request["mappings"].values()
        for uuid in uuids
    }
    assert named == mapped == set(answer["provider_summaries"]) == set(OLD)
