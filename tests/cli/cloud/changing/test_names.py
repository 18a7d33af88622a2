# SPDX-License-Identifier: Apache-2.0
"""Names of aggregates: set, taken from Nova or a file, and shown wherever an aggregate is."""

import json

import pytest

from tests.api.resources.extension.clouds import uuid_of
from tests.cli.services import client_in, refused, served, succeed
from tests.compute import compute_with, with_cloud
from treeclaim.client.aggregates import read_aggregate_names
from treeclaim.model.names import aggregate_uuid

RACK, ZONE, PLAIN = (uuid_of(name) for name in ("rack", "zone", "plain"))
WORDS = f"""
providers:
- name: host
  inventories: {{VCPU: 8}}
  aggregates: ["rack {{7}}", {RACK}]
"""
IN_WORDS = aggregate_uuid("rack {7}")


@pytest.fixture
def environment(tmp_path):
    """A service without anything."""
    with served(tmp_path) as environment:
        yield environment


def names(environment):
    with client_in(environment) as client:
        return read_aggregate_names(client)


def rename(environment, aggregate, name):
    return succeed(environment, "aggregate", "set", aggregate, "--name", name)


def load(environment, folder, *more):
    path = folder / "topology.yaml"
    path.write_text(WORDS)
    return succeed(environment, "load", str(path), *more)


@pytest.mark.slow
def test_aggregate_names_and_zones_are_imported_from_nova(environment, tmp_path):
    aggregates = [
        {"id": 1, "uuid": RACK, "name": "rack ä", "availability_zone": "az-1", "hosts": ["a"]},
        {"id": 2, "uuid": ZONE, "name": "az-1", "availability_zone": "az-1", "hosts": []},
        {"id": 3, "uuid": PLAIN, "name": "p" * 255, "availability_zone": None, "hosts": []},
    ]
    rename(environment, ZONE, "by hand")
    rename(environment, uuid_of("own"), "mine")
    with compute_with(aggregates=aggregates) as (compute, url):
        variables = with_cloud(environment, tmp_path, url)
        dry = succeed(variables, "aggregate", "import", "nova", "--dry-run")
        assert "3 names would be changed, 0 as they were" in dry
        assert names(environment) == {ZONE: "by hand", uuid_of("own"): "mine"}
        assert "3 names changed" in succeed(variables, "aggregate", "import", "nova")
        assert "0 names changed, 3 as they were" in succeed(
            variables, "aggregate", "import", "nova"
        )
        assert {version for version, _ in compute.asked} == {"compute 2.41"}
    assert names(environment) == {
        RACK: "rack ä, zone az-1",
        ZONE: "az-1",
        PLAIN: "p" * 255,
        uuid_of("own"): "mine",
    }
    assert json.loads(succeed(environment, "aggregate", "list", "-f", "json"))["names"] == names(
        environment
    )


def test_nova_without_aggregate_uuids_is_refused(environment, tmp_path):
    with compute_with(aggregates=[{"id": 1, "name": "rack"}]) as (_, url):
        variables = with_cloud(environment, tmp_path, url)
        assert "does not list the uuids" in refused(variables, "aggregate", "import", "nova")


@pytest.mark.slow
def test_aggregate_names_are_set_and_removed_by_command_and_file(environment, tmp_path):
    path = tmp_path / "names.json"
    path.write_text(json.dumps({RACK: "seven", ZONE: "one"}))
    succeed(environment, "aggregate", "import", str(path))
    assert "1 names changed" in rename(environment, RACK.upper(), "eight")
    assert "1 names changed" in rename(environment, ZONE, "")
    assert names(environment) == {RACK: "eight"}
    assert "eight" in succeed(environment, "aggregate", "list")
    path.write_text(json.dumps({RACK: None}))
    succeed(environment, "aggregate", "import", str(path))
    assert names(environment) == {}
    for wrong in ("[]", "{", '{"rack": "seven"}', json.dumps({RACK: 7})):
        path.write_text(wrong)
        assert refused(environment, "aggregate", "import", str(path))
    assert names(environment) == {}


@pytest.mark.slow
def test_topology_names_aggregates_and_keeps_later_renames(environment, tmp_path):
    dry = load(environment, tmp_path, "--dry-run")
    assert f"+ name of an aggregate rack {{7}} ({IN_WORDS})" in dry
    assert names(environment) == {}
    load(environment, tmp_path)
    assert names(environment) == {IN_WORDS: "rack {7}"}
    rename(environment, IN_WORDS, "seven")
    assert "name of an aggregate" not in load(environment, tmp_path, "--dry-run")
    load(environment, tmp_path)
    assert names(environment) == {IN_WORDS: "seven"}


@pytest.mark.slow
def test_aggregate_names_are_shown_beside_uuids(environment, tmp_path):
    load(environment, tmp_path)
    rename(environment, RACK, "seven")
    shown = f"seven ({RACK})"
    assert f"aggregate {shown}" in succeed(environment, "tree", "host")
    assert shown in succeed(environment, "provider", "show", "host")
    fits = succeed(environment, "fit", "resources=VCPU:1", "--domains", "seven")
    assert shown in fits
    assert IN_WORDS not in fits
    # By the word of the topology file, and by uuid, as ever.
    for word in ("rack {7}", IN_WORDS):
        assert IN_WORDS in succeed(environment, "fit", "resources=VCPU:1", "--domains", word)
    assert "no provider is in an aggregate 'eight'" in refused(
        environment, "fit", "resources=VCPU:1", "--domains", "eight"
    )
    why = succeed(environment, "explain", "resources=VCPU:1", f"member_of=!{RACK}")
    assert f"forbidden_member_of aggregate={shown}" in why
    rename(environment, PLAIN, "plain")
    why = succeed(environment, "explain", "resources=VCPU:1", f"member_of=in:{PLAIN},{ZONE}")
    assert f"plain ({PLAIN})" in why
    assert f"its aggregates: {', '.join(sorted([shown, f'rack {{7}} ({IN_WORDS})']))}" in why
