# SPDX-License-Identifier: Apache-2.0
"""The server with the service: connections persist, and arbitrary bytes are answered."""

import json
import uuid
from contextlib import closing

import pytest

from tests.bodies import claim_of
from tests.budgets import traced_memory
from tests.server.early_answers import Case, KeptConnection, judge
from tests.server.fronts import running
from tests.server.fuzzing import attack
from tests.servers import eventually
from tests.service import HEADERS, make_application

SEEDS = 5_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The server in this process, with short deadlines and bodies."""
    limit = 200_000
    application = make_application(
        tmp_path_factory.mktemp("service"), **{"treeclaim.max_body_bytes": limit}
    )
    with running(application, threads=4, body_bytes=limit, header_seconds=5.0) as server:
        yield server


@pytest.mark.slow
def test_early_response_keeps_the_connection_usable(server):
    judge(server.address, keeps=True)


@pytest.mark.parametrize("status", [401, 413])
def test_oversized_body_closes_the_connection_with_a_header(server, status):
    headers = {"Content-Type": "application/json"} | (HEADERS if status == 413 else {})
    case = Case("POST", "/resource_providers", headers, b"x" * 300_000, status)
    with closing(KeptConnection(server.address)) as connection:
        for number in range(3):
            answer = connection.ask(case)
            assert (answer.status, answer.says_close) == (status, True)
            assert connection.opened == number + 1


@pytest.mark.slow
def test_arbitrary_bytes_are_answered_or_refused(server, caplog):
    attack(server.address, range(SEEDS), at_once=40)
    assert "Traceback" not in caplog.text
    assert server.ask().status == 200


REQUESTS = 40


@pytest.mark.slow
@pytest.mark.parametrize("amount", [1, 9])
def test_claim_memory_is_released_with_its_response(server, amount):
    """All requests are refused: the host has 8 units, and the consumer is no longer new.

    The memory must not wait for a garbage collection, which is rare, since bodies may have 16 MB.
    """
    host, consumer = str(uuid.uuid4()), str(uuid.uuid4())

    def case(method, path, document):
        version = {
            "openstack-api-version": "placement 1.39, treeclaim latest",
            "x-roles": "admin,service",
        }
        headers = HEADERS | version | {"Content-Type": "application/json"}
        return Case(method, path, headers, json.dumps(document).encode())

    claims = {
        str(uuid.UUID(int=number)): claim_of(
            {host: {"resources": {"VCPU": amount}}}, project_id="p" * 200
        )
        for number in range(200)
    }
    stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
    with closing(KeptConnection(server.address)) as connection:
        connection.ask(case("POST", "/resource_providers", {"name": host, "uuid": host}))
        connection.ask(case("PUT", f"/resource_providers/{host}/inventories", stock))
        small = claims[str(uuid.UUID(int=0))] | {"mappings": {f"_{'A' * 60}": [host] * 4_000}}
        entries = [{"uuid": host, "generation": 99, "traits": [f"CUSTOM_{'A' * 200}"] * 400}]
        reshaped = {"inventories": {host: stock}, "allocations": claims}
        for request in (
            case("POST", "/allocations", claims),
            case("PUT", f"/allocations/{consumer}", small),
            case("POST", "/reshaper", reshaped),
            case("POST", "/treeclaim/providers", {"providers": entries, "create_names": True}),
        ):
            connection.ask(request)
            with traced_memory() as measure:
                for _ in range(REQUESTS // 2):
                    assert connection.ask(request).status == 409
                # Each thread may hold its last request, which is larger than its body once it is parsed.
                most = REQUESTS // 2 * len(request.body)
                eventually(lambda: measure()[0] < most, "the requests are free", 60)  # noqa: B023
