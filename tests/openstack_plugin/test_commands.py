# SPDX-License-Identifier: Apache-2.0
"""`openstack treeclaim ...`: the real command with the plugin, against a real service."""

import json

import pytest

from tests.cli.services import open_client, run_service, run_successful_command
from tests.compute import compute_with, with_cloud
from tests.paths import EXAMPLE


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A service with the example topology, in a cloud of clouds.yaml."""
    folder = tmp_path_factory.mktemp("service")
    with run_service(folder) as variables, compute_with() as (_, url):
        run_successful_command(variables, "load", str(EXAMPLE))
        endpoint = variables["TREECLAIM_ENDPOINT"]
        yield with_cloud(variables, folder, url, placement_endpoint_override=endpoint)


@pytest.fixture(scope="module")
def openstack(shell, environment):
    """The command, as in the terminal of an operator of this cloud."""
    # Modules of the `treeclaim` command alone must not be needed.
    login = {name: value for name, value in environment.items() if name != "TREECLAIM_ENDPOINT"}
    return lambda *arguments: shell.run("treeclaim", *arguments, environment=login)


def output_of(done, code=0):
    """The JSON document of a command."""
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_candidates_are_listed_in_order_with_their_scores(openstack):
    command = ["candidates", "resources=VCPU:2", "--order-by", "pack", "--limit", "3"]
    answer = output_of(openstack(*command, "-f", "json"))
    assert answer["scores"] == sorted(answer["scores"], reverse=True)
    assert len(answer["allocation_requests"]) == 3
    columns = [word for name in ("candidate", "Score", "Takes") for word in ("-c", name)]
    rows = output_of(openstack(*command, "-f", "json", *columns))
    assert [row["Candidate"] for row in rows] == [1, 2, 3]
    assert rows[0]["Takes"][0]["resources"] == {"VCPU": 2}
    table = openstack(*command)
    assert "2 VCPU" in table.stdout
    assert "| Candidate |" in table.stdout


def test_rows_are_sorted_by_a_column(openstack):
    command = ("tree", "--sort-column", "uuid", "--sort-descending", "-c", "UUID")
    uuids = openstack(*command, "-f", "value").stdout.split()
    assert uuids == sorted(uuids, reverse=True)
    rows = openstack(*command).stdout.splitlines()[3:-1]
    assert [row.split()[1] for row in rows] == uuids


def test_trees_are_listed_with_children_below_their_parents(openstack):
    (tree,) = output_of(openstack("tree", "host-1", "-f", "json"))
    assert tree["name"] == "host-1"
    assert tree["attributes"] == {}
    columns = [word for name in ("Name", "Depth", "Inventories") for word in ("-c", name)]
    rows = output_of(openstack("tree", "host-1", "-f", "json", *columns))
    assert [(row["Name"], row["Depth"]) for row in rows[:2]] == [
        ("host-1", 0),
        ("host-1_numa0", 1),
    ]
    assert rows[1]["Inventories"]["VCPU"]["capacity"] == 64
    assert "|   host-1_numa0 " in openstack("tree", "host-1", *columns).stdout
    assert "reserved" in openstack("tree", "host-1", "--class", "VCPU", "--inventories").stdout


def test_an_audit_lists_findings_with_the_exit_codes_of_treeclaim(openstack, environment):
    assert openstack("audit").stdout == "Nothing found.\n"
    with open_client(environment) as client:
        client.call("PUT", "/traits/CUSTOM_FORGOTTEN")
    columns = ("-c", "Kind", "-c", "Finding", "-f", "json")
    (finding,) = output_of(openstack("audit", *columns), code=1)
    assert finding == {"Kind": "unused_trait", "Finding": {"name": "CUSTOM_FORGOTTEN"}}
    assert "name=CUSTOM_FORGOTTEN" in openstack("audit").stdout
    failed = openstack("audit", "--repair", "orphaned")
    assert failed.returncode == 2
    assert "--living-from" in failed.stderr
