# SPDX-License-Identifier: Apache-2.0
"""Names of aggregates: set, taken from Nova or a file, and shown wherever an aggregate is."""

import json

import pytest

from tests.api.resources.extension.clouds import uuid_of
from tests.cli.services import (
    open_client,
    run_refused_command,
    run_service,
    run_successful_command,
)
from tests.compute import compute_with, with_cloud
from treeclaim.client.aggregates import read_aggregate_names

RACK, ZONE, PLAIN = (uuid_of(name) for name in ("rack", "zone", "plain"))


@pytest.fixture
def environment(tmp_path):
    """A service without anything."""
    with run_service(tmp_path) as environment:
        yield environment


def names(environment):
    with open_client(environment) as client:
        return read_aggregate_names(client)


def rename(environment, aggregate, name):
    return run_successful_command(environment, "aggregate", "set", aggregate, "--name", name)


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
        dry = run_successful_command(variables, "aggregate", "import", "nova", "--dry-run")
        assert "3 names would be changed, 0 as they were" in dry
        assert names(environment) == {ZONE: "by hand", uuid_of("own"): "mine"}
        assert "3 names changed" in run_successful_command(
            variables, "aggregate", "import", "nova"
        )
        assert "0 names changed, 3 as they were" in run_successful_command(
            variables, "aggregate", "import", "nova"
        )
        assert {version for version, _ in compute.asked} == {"compute 2.41"}
    assert names(environment) == {
        RACK: "rack ä, zone az-1",
        ZONE: "az-1",
        PLAIN: "p" * 255,
        uuid_of("own"): "mine",
    }
    assert json.loads(run_successful_command(environment, "aggregate", "list", "-f", "json"))[
        "names"
    ] == names(environment)


def test_nova_without_aggregate_uuids_is_refused(environment, tmp_path):
    with compute_with(aggregates=[{"id": 1, "name": "rack"}]) as (_, url):
        variables = with_cloud(environment, tmp_path, url)
        assert "does not list the uuids" in run_refused_command(
            variables, "aggregate", "import", "nova"
        )
