# SPDX-License-Identifier: Apache-2.0
"""As many claims in one call as clients of Placement send."""

import json
import uuid

import pytest

from tests.api.raw import send
from tests.bodies import add_hosts, claim_of
from tests.service import client_of, make_application

HOSTS = [str(uuid.UUID(int=number + 1)) for number in range(10)]
STOCK = {"VCPU": 100_000, "MEMORY_MB": 1_000_000, "DISK_GB": 1_000_000}


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    """A service with a few large hosts."""
    service = make_application(tmp_path_factory.mktemp("claims"))
    with client_of(service) as client:
        add_hosts(client, *HOSTS, **STOCK)
    return service


def claims(count):
    """The body of a call that places so many new consumers."""
    return json.dumps(
        {
            str(uuid.uuid4()): claim_of(
                {
                    HOSTS[number % len(HOSTS)]: {
                        "resources": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 10}
                    }
                },
                mappings={"": [HOSTS[number % len(HOSTS)]]},
                project_id="project",
                user_id="user",
            )
            for number in range(count)
        }
    ).encode()


@pytest.mark.slow
def test_one_call_claims_for_five_thousand_consumers(application):
    answer = send(application, "POST", "/allocations", body=claims(5_000))
    assert answer.status == 204, answer.detail
    used = send(application, "GET", f"/resource_providers/{HOSTS[0]}/usages").json()["usages"]
    assert used == {"VCPU": 500, "MEMORY_MB": 256_000, "DISK_GB": 5_000}
