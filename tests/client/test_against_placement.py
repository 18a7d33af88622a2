# SPDX-License-Identifier: Apache-2.0
"""The client against openstack-placement itself.

The other service runs as a black box, from a virtual environment of its own that the benchmark uses
too. Where that cannot be made, the tests are skipped and say so.
"""

import uuid

import pytest

from tests.client.hosts import HOST, held, make_host
from tests.peer import openstack_placement_on
from treeclaim.client import Client

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def endpoint(peer, tmp_path_factory):
    """The URL of an openstack-placement with one host."""
    folder = tmp_path_factory.mktemp("placement")
    with openstack_placement_on(f"sqlite:///{folder / 'placement.db'}", folder) as (
        url,
        _,
    ):
        with Client(url, "admin") as client:
            make_host(client)
        yield url


def test_claims_and_releases(endpoint):
    with Client(endpoint, "admin") as client:
        (candidate,) = client.candidates("resources=VCPU:2")["allocation_requests"]
        consumer = str(uuid.uuid4())
        client.claim(consumer, candidate, project_id="p", user_id="u")
        assert held(client, consumer) == {HOST: {"VCPU": 2}}
        assert client.release(consumer) is True
        assert held(client, consumer) == {}
        assert client.release(consumer) is False
