# SPDX-License-Identifier: Apache-2.0
"""A cloud of many copies is asked about providers that there are, and each operation has its line."""

import subprocess
import sys

import pytest
import sqlalchemy as sa

from bench.cases import scaling
from bench.clients.endpoint import Endpoint
from bench.measuring import served
from tests.clouds.bulk import write_world
from tests.paths import ROOT
from treeclaim.store.schema import tables


def test_a_copy_has_the_uuid_and_name_that_the_world_says(tmp_path):
    world = scaling(2, 3)
    url = f"sqlite:///{tmp_path / 'placement.db'}"
    write_world(url, world)
    providers = tables.resource_providers.c
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        written = connection.execute(sa.select(providers.uuid, providers.name)).all()
    engine.dispose()
    assert {tuple(row) for row in written} == {
        world.copied(provider, copy)
        for provider in world.providers
        for copy in range(world.copies)
    }
    assert len(written) == world.size


@pytest.mark.slow
def test_every_operation_has_its_line():
    command = [sys.executable, "-m", "bench.large", "served", "--copies", "1"]
    written = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    rows = [line for line in written.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {5}
    names = {row.split("|")[1].strip() for row in rows}
    nobody = served.Clients(scaling(1, 1), Endpoint("nobody", "http://localhost"))
    assert {name for name, *_ in served.operations(nobody)} <= names
