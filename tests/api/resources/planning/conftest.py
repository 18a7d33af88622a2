# SPDX-License-Identifier: Apache-2.0
"""A cloud for plans, made once and copied for each test."""

import shutil

import pytest

from tests.api.resources.planning.clouds import HEADERS, applied, host, instance
from tests.service import client_of, services_on, start_on


@pytest.fixture(scope="package")
def cloud_of_four(tmp_path_factory):
    """Four hosts in two racks: i1 and i2 on a, i3 on b, i4 on c; d is empty."""
    folder = tmp_path_factory.mktemp("cloud")
    with services_on(folder) as (_, application), client_of(application, **HEADERS) as client:
        applied(
            client,
            host("a", "r1", VCPU=8),
            host("b", "r1", VCPU=8),
            host("c", "r2", VCPU=8),
            host("d", "r2", VCPU=4),
        )
        instance(client, "i1", "a", 4)
        instance(client, "i2", "a", 2)
        instance(client, "i3", "b", 6)
        instance(client, "i4", "c", 5)
    return folder / "placement.db"


@pytest.fixture
def database(tmp_path, cloud_of_four):
    """The URL of a copy of it."""
    shutil.copyfile(cloud_of_four, tmp_path / "placement.db")
    return f"sqlite:///{tmp_path / 'placement.db'}"


@pytest.fixture
def service(tmp_path, database):
    with start_on(database, tmp_path) as application, client_of(application, **HEADERS) as client:
        yield client
