# SPDX-License-Identifier: Apache-2.0
"""The rights to place, to count and to ask for alternatives (contract page 98, section 1)."""

import pytest

from tests.service import client_of, make_application

VERSION = "placement 1.39, treeclaim 1.0"
PLACE = (
    "/treeclaim/placements",
    {
        "requests": [
            {
                "alternatives": ["resources=VCPU:1"],
                "consumers": ["5f5a0000-0000-4000-8000-000000000001"],
                "project_id": "p",
                "user_id": "u",
                "consumer_type": "INSTANCE",
            }
        ]
    },
)
ASK = ("/treeclaim/candidates", {"alternatives": ["resources=VCPU:1"]})
COUNT = ("/treeclaim/capacity", {"requests": {"a": "resources=VCPU:1"}})
UNPLACED, DONE, FORBIDDEN = 409, 200, 403
"""There are no providers: who may place is told that there is no room."""


def status(client, operation, roles):
    """Return the status of an operation for a caller with some roles."""
    path, body = operation
    headers = {"x-auth-token": "someone", "x-roles": roles, "openstack-api-version": VERSION}
    answer = client.post(path, json=body, headers=headers)
    if answer.status_code == FORBIDDEN:
        assert "Policy does not allow" in answer.json()["errors"][0]["detail"]
    return answer.status_code


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """A service without a policy file."""
    with client_of(make_application(tmp_path_factory.mktemp("usual"))) as client:
        yield client


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A service with a policy file that names rules of the new operations alone."""
    folder = tmp_path_factory.mktemp("own")
    policy = folder / "policy.yaml"
    policy.write_text(
        '"treeclaim:placements:create": "role:placer"\n'
        '"placement:allocation_candidates:list": "role:asker"\n'
    )
    options = {"oslo_policy.policy_file": str(policy)}
    with client_of(make_application(folder, **options)) as client:
        yield client


@pytest.mark.parametrize(
    ("roles", "operation", "wanted"),
    [
        ("admin", PLACE, UNPLACED),
        ("service", PLACE, UNPLACED),
        ("member", PLACE, FORBIDDEN),
        ("admin", ASK, DONE),
        ("member", ASK, FORBIDDEN),
        ("admin", COUNT, DONE),
        ("member", COUNT, FORBIDDEN),
    ],
)
def test_the_defaults_are_those_of_allocations_and_candidates(usual, roles, operation, wanted):
    assert status(usual, operation, roles) == wanted


@pytest.mark.parametrize(
    ("roles", "operation", "wanted"),
    [
        ("placer", PLACE, UNPLACED),
        ("admin", PLACE, FORBIDDEN),
        ("asker", PLACE, FORBIDDEN),
        ("asker", ASK, DONE),
        ("placer", ASK, FORBIDDEN),
        ("asker", COUNT, DONE),
        ("placer", COUNT, FORBIDDEN),
    ],
)
def test_a_policy_file_may_name_their_rules(own, roles, operation, wanted):
    assert status(own, operation, roles) == wanted
