# SPDX-License-Identifier: Apache-2.0
"""`treeclaim mix`: put, shown, listed, deleted, and learnt from kept requests (page 101, section 2)."""

import json

import pytest
import sqlalchemy as sa

from tests.api.resources.extension.clouds import uuid_of
from tests.cli.processes import call
from tests.cli.services import client_in, hold, refused, served_hosts, succeed
from treeclaim.cli.planning.mixes import remove_preferences

HOST = uuid_of("host")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A service with a host, and a database file beside it."""
    entry = {"name": "host", "uuid": HOST, "inventories": {"VCPU": {"total": 100_000}}}
    with served_hosts(tmp_path_factory.mktemp("service"), entry) as environment:
        yield environment


def keep(environment, name, *queries):
    """Claim something for a consumer, placed by some queries."""
    hold(environment, uuid_of(name), HOST, 1, request=list(queries) or None)


def by_hand(environment, statement):
    """Change the database behind the service's back."""
    folder = environment["HOME"]
    engine = sa.create_engine(f"sqlite:///{folder}/of-the-service/placement.db")
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


def mix(environment, name):
    with client_in(environment) as client:
        return client.get(f"/treeclaim/mixes/{name}")["requests"]


@pytest.mark.slow
def test_learned_mix_counts_first_alternatives_of_requests(environment):
    assert "no consumer has a stored request" in refused(environment, "mix", "learn", "learnt")
    # One query with three orders; a second alternative; none at all.
    keep(environment, "a", "resources=VCPU:1&order_by=pack&limit=3")
    keep(environment, "b", "resources=VCPU:1&preferred=HW_CPU_X86_AVX2", "resources=VCPU:9")
    keep(environment, "c", "resources=VCPU:1")
    keep(
        environment,
        "d",
        "resources_G=VCPU:2&required_G=!HW_CPU_X86_AVX2&preferred_G=HW_CPU_X86_VMX",
    )
    keep(environment, "e")
    dry = succeed(environment, "mix", "learn", "learnt", "--dry-run", "-f", "json")
    succeed(environment, "mix", "learn", "learnt")
    learnt = mix(environment, "learnt")
    assert json.loads(dry) == {"requests": learnt}
    assert list(learnt.values()) == [
        {"query": "resources=VCPU:1", "weight": 3},
        {"query": "resources_G=VCPU:2&required_G=!HW_CPU_X86_AVX2", "weight": 1},
    ]
    by_hand(environment, "UPDATE consumers SET created_at = '2020-01-01 00:00:00'")
    keep(environment, "f", "resources=VCPU:3")
    succeed(environment, "mix", "learn", "late", "--since", "2021-01-01T00:00:00+01:00")
    assert list(mix(environment, "late").values()) == [{"query": "resources=VCPU:3", "weight": 1}]
    assert "not a time in the form of RFC 3339" in refused(
        environment, "mix", "learn", "x", "--since", "noon"
    )


@pytest.mark.slow
def test_learned_mix_has_the_64_most_frequent_valid_queries(environment):
    with client_in(environment) as client:
        client.call("PUT", "/traits/CUSTOM_GOES")
    by_hand(environment, "UPDATE consumers SET created_at = '2020-01-01 00:00:00'")
    for number in range(66):
        keep(environment, f"many-{number}", f"resources=VCPU:{100 + number}")
    for number in range(9):
        keep(environment, f"gone-{number}", "resources=VCPU:7&required=CUSTOM_GOES")
    for number in range(2):
        keep(environment, f"twice-{number}", "resources=VCPU:8")
    with client_in(environment) as client:
        client.call("DELETE", "/traits/CUSTOM_GOES")
    result = call(environment, "mix", "learn", "many", "--since", "2021-01-01T00:00:00Z")
    assert result.returncode == 0
    assert "left out: resources=VCPU:7&required=CUSTOM_GOES" in result.stderr
    learnt = list(mix(environment, "many").values())
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
