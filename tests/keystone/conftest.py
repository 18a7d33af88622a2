# SPDX-License-Identifier: Apache-2.0
"""A Keystone for all tests of this folder, and a Treeclaim behind it."""

import httpx
import pytest

from tests.keystone.keystone_server import Keystone
from tests.keystone.service import behind, memcached_server
from tests.ports import free_port


@pytest.fixture(scope="session")
def service_url():
    """The URL of the service in Keystone's catalogue."""
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture(scope="session")
def keystone(tmp_path_factory, service_url):
    """A Keystone with users, projects and a placement endpoint."""
    keystone = Keystone(tmp_path_factory.mktemp("keystone"), service_url)
    keystone.start()
    try:
        keystone.populate()
        yield keystone
    finally:
        keystone.stop()


@pytest.fixture(scope="session")
def memcached(memcached):
    """The address of a memcached that keeps tokens, as in the installation guides."""
    with memcached_server() as (_, address):
        yield address


@pytest.fixture(scope="session")
def service(tmp_path_factory, keystone, service_url, memcached):
    """A Treeclaim that uses this Keystone, as a server process."""
    folder = tmp_path_factory.mktemp("treeclaim")
    with behind(keystone, folder, service_url, memcached) as server:
        yield server


@pytest.fixture
def http(service, service_url):
    """An HTTP client for the service, without a token."""
    headers = {"openstack-api-version": "placement 1.39"}
    with httpx.Client(base_url=service_url, headers=headers, timeout=60) as client:
        yield client
