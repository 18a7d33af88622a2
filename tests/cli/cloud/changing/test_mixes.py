# SPDX-License-Identifier: Apache-2.0
"""`treeclaim mix`: put, shown, listed, deleted, and learnt from kept requests (page 101, section 2)."""

import json

import pytest
import sqlalchemy as sa

from tests.api.resources.extension.clouds import uuid_of
from tests.cli.processes import call
from tests.cli.services import (
    claim_vcpu,
    open_client,
    run_refused_command,
    run_service_with_hosts,
    run_successful_command,
)
from treeclaim.cli.planning.mixes import remove_preferences

HOST = uuid_of("host")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A service with a host, and a database file beside it."""
    entry = {"name": "host", "uuid": HOST, "inventories": {"VCPU": {"total": 100_000}}}
    with run_service_with_hosts(tmp_path_factory.mktemp("service"), entry) as environment:
        yield environment


def claim_with_request(environment, name, *queries):
    """Claim a VCPU for a consumer with a stored request."""
    claim_vcpu(environment, uuid_of(name), HOST, 1, request=list(queries) or None)


def execute_on_database(environment, statement):
    """Execute a statement on the database without the service."""
    folder = environment["HOME"]
    engine = sa.create_engine(f"sqlite:///{folder}/of-the-service/placement.db")
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


def read_mix(environment, name):
    with open_client(environment) as client:
        return client.get(f"/treeclaim/mixes/{name}")["requests"]


@pytest.mark.slow
def test_learned_mix_counts_first_alternatives_of_requests(environment):
    assert "no consumer has a stored request" in run_refused_command(
        environment, "mix", "learn", "learnt"
    )
    # One query with three orders; a second alternative; none at all.
    claim_with_request(environment, "a", "resources=VCPU:1&order_by=pack&limit=3")
    claim_with_request(
        environment, "b", "resources=VCPU:1&preferred=HW_CPU_X86_AVX2", "resources=VCPU:9"
    )
    claim_with_request(environment, "c", "resources=VCPU:1")
    claim_with_request(
        environment,
        "d",
        "resources_G=VCPU:2&required_G=!HW_CPU_X86_AVX2&preferred_G=HW_CPU_X86_VMX",
    )
    claim_with_request(environment, "e")
    dry = run_successful_command(environment, "mix", "learn", "learnt", "--dry-run", "-f", "json")
    run_successful_command(environment, "mix", "learn", "learnt")
    learnt = read_mix(environment, "learnt")
    assert json.loads(dry) == {"requests": learnt}
    assert list(learnt.values()) == [
        {"query": "resources=VCPU:1", "weight": 3},
        {"query": "resources_G=VCPU:2&required_G=!HW_CPU_X86_AVX2", "weight": 1},
    ]
    execute_on_database(environment, "UPDATE consumers SET created_at = '2020-01-01 00:00:00'")
    claim_with_request(environment, "f", "resources=VCPU:3")
    run_successful_command(
        environment, "mix", "learn", "late", "--since", "2021-01-01T00:00:00+01:00"
    )
    assert list(read_mix(environment, "late").values()) == [
        {"query": "resources=VCPU:3", "weight": 1}
    ]
    assert "not a time in the form of RFC 3339" in run_refused_command(
        environment, "mix", "learn", "x", "--since", "noon"
    )


@pytest.mark.slow
def test_learned_mix_has_the_64_most_frequent_valid_queries(environment):
    with open_client(environment) as client:
        client.call("PUT", "/traits/CUSTOM_GOES")
    execute_on_database(environment, "UPDATE consumers SET created_at = '2020-01-01 00:00:00'")
    for number in range(66):
        claim_with_request(environment, f"many-{number}", f"resources=VCPU:{100 + number}")
    for number in range(9):
        claim_with_request(environment, f"gone-{number}", "resources=VCPU:7&required=CUSTOM_GOES")
    for number in range(2):
        claim_with_request(environment, f"twice-{number}", "resources=VCPU:8")
    with open_client(environment) as client:
        client.call("DELETE", "/traits/CUSTOM_GOES")
    result = call(environment, "mix", "learn", "many", "--since", "2021-01-01T00:00:00Z")
    assert result.returncode == 0
    assert "left out: resources=VCPU:7&required=CUSTOM_GOES" in result.stderr
    learnt = list(read_mix(environment, "many").values())
    assert learnt[0] == {"query": "resources=VCPU:8", "weight": 2}
    assert learnt[1:] == [
        {"query": f"resources=VCPU:{100 + number}", "weight": 1} for number in range(63)
    ]


def test_learning_drops_only_preference_parameters():
    query = "resources1=VCPU:1,DISK_GB:2&required1=in:A,B&same_subtree=1,!_X&from_holds=1&limit=2"
    assert (
        remove_preferences(query)
        == "resources1=VCPU:1,DISK_GB:2&required1=in:A,B&same_subtree=1,!_X"
    )
    assert remove_preferences("resources=A%26B:1&order_by_X=1") == "resources=A%26B:1&order_by_X=1"
