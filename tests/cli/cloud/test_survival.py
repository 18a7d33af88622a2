# SPDX-License-Identifier: Apache-2.0
"""`treeclaim survival`: what it shows, and its exit status."""

import json

import pytest

from tests.api.resources.planning.clouds import host, uuid_of
from tests.cli.processes import call
from tests.cli.services import client_in, hold, output_of, served_hosts


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    hosts = [host("a", "r1", VCPU=8), host("b", "r2", VCPU=4)]
    with served_hosts(tmp_path_factory.mktemp("service"), *hosts) as found:
        for name, at, amount in (("i1", "a", 5), ("i2", "b", 2)):
            request = [f"resources=VCPU:{amount}"]
            hold(found, uuid_of(name), uuid_of(at), amount, request=request)
        yield found


def asked(environment, *arguments, code):
    return output_of(environment, "survival", *arguments, code=code)


@pytest.mark.slow
def test_domains_that_do_not_survive_give_a_table_and_exit_status_1(environment):
    text = asked(environment, code=1)
    assert "1 of 2 survive" in text
    assert "1 without a place" in text
    assert uuid_of("i1") in text
    assert "b" not in [line.split()[0] for line in text.splitlines()[1:-1]]
    assert "survives" in asked(environment, "--all", code=1)


@pytest.mark.slow
def test_full_survival_has_exit_status_0(environment, tmp_path):
    given = tmp_path / "given.json"
    given.write_text(json.dumps({"providers": [host("c", VCPU=8)]}))
    assert asked(environment, "--given", str(given), code=0) == "3 of 3 survive\n"
    assert "1 of 1 survive" in asked(environment, "--domains", uuid_of("r2"), code=0)
    assert "2 of 2 survive" in asked(environment, "--consumer-type", "MIGRATION", code=0)


def test_aggregate_is_shown_by_its_name(environment):
    with client_in(environment) as client:
        names = {"names": {uuid_of("r1"): "first rack"}}
        client.call("POST", "/treeclaim/aggregates/names", names)
    assert "first rack" in asked(environment, "--domains", uuid_of("r1"), code=1)


def test_json_output_equals_the_server_response(environment):
    document = json.loads(asked(environment, "-f", "json", "--explain", "--limit", "1", code=1))
    assert (document["survive"], document["of"]) == (1, 2)
    assert document["domains"][0]["explanation"]["feasible"] is False


def test_a_failure_is_exit_status_2(environment, tmp_path):
    assert "treeclaim: " in call(environment, "survival", "--given", "nofile").stderr
    asked(environment, "--given", "nofile", code=2)
    asked(environment, "--domains", "nobody", code=2)
    asked({**environment, "TREECLAIM_ENDPOINT": "http://127.0.0.1:1"}, code=2)
    wrong = tmp_path / "wrong.json"
    wrong.write_text("[]")
    asked(environment, "--given", str(wrong), code=2)
