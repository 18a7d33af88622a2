# SPDX-License-Identifier: Apache-2.0
"""Numbers of any length in questions for candidates (contract page 90, note N6)."""

import json

import pytest

from tests.api.raw import send
from tests.api.test_numbers import HOST, application, offer
from tests.service import make_application

__all__ = ["application"]

QUESTIONS = [
    "resources=VCPU:{}",
    "resources=VCPU:{}&limit=1",
    "resources=VCPU:1&resources1=VCPU:{}",
    "resources1=VCPU:{}&resources2=VCPU:{}&group_policy=none",
    "resources=VCPU:1&limit={}",
    "resources=VCPU:{}&can_split=VCPU",
    "resources=VCPU:{}&can_split=VCPU&split_policy=even",
    "resources=VCPU:1&can_split={}",
]


@pytest.mark.parametrize("strategy", ["depth-first", "breadth-first"])
def test_amount_beyond_the_storable_range_fits_nowhere(tmp_path, strategy):
    service = make_application(
        tmp_path, **{"placement.allocation_candidates_generation_strategy": strategy}
    )
    body = json.dumps({"name": "host", "uuid": HOST}).encode()
    send(service, "POST", "/resource_providers", body=body)
    offer(service)
    for amount in (2**31, 2**63 - 1, 2**63, 2**64, 10**400 - 1):
        for question in QUESTIONS[:3]:
            query = question.replace("{}", str(amount)).encode()
            answer = send(service, "GET", "/allocation_candidates", query=query)
            assert answer.status == 200, answer.body
            assert answer.json()["allocation_requests"] == []
