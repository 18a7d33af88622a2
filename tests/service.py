# SPDX-License-Identifier: Apache-2.0
"""The service as tests use it: in process, on an empty database of its own."""

import configparser
from contextlib import contextmanager
from pathlib import Path

import httpx
from keystoneauth1.adapter import Adapter

from tests.databases import filled_database
from treeclaim import config
from treeclaim.api.app import create_application, start_services
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.catalogue import standard_names
from treeclaim.store.schema import revisions as schema

HEADERS = {
    "x-auth-token": "admin",
    "openstack-api-version": "placement 1.39",
    "accept": "application/json",
}


def fresh_database(folder):
    """Put an SQLite database with schema and standard names into a folder; return its URL."""
    with fresh_database_on("sqlite", folder) as url:
        return url


def fresh_database_on(kind, folder):
    """Yield the URL of a database of a kind with schema and standard names."""
    return filled_database(kind, schema_on, folder)


def make_application(folder, **overrides):
    """Start the service with a fresh SQLite database and a configuration file, both in a folder.

    Overrides are values by "group.option", dots written as they are:
    `make_application(folder, **{"api.auth_strategy": "keystone"})`.
    """
    configuration = _configuration(Path(folder), fresh_database(folder), overrides)
    return create_application(start_services(configuration), configuration)


@contextmanager
def application_on(kind, folder, **overrides):
    """The service on an empty database of a kind, stopped in the end; see `make_application`."""
    with (
        fresh_database_on(kind, folder) as url,
        start_on(url, folder, **overrides) as application,
    ):
        yield application


@contextmanager
def start_on(url, folder, **overrides):
    """The service on a database that has the schema, stopped in the end."""
    with services_on_database(url, folder, **overrides) as (_, application):
        yield application


def services_on(folder, **overrides):
    """The parts of a service on a fresh SQLite database, and its application."""
    return services_on_database(fresh_database(folder), folder, **overrides)


@contextmanager
def services_on_database(url, folder, **overrides):
    """The services and the application on a database that has the schema."""
    configuration = _configuration(Path(folder), url, overrides)
    services = start_services(configuration)
    try:
        yield services, create_application(services, configuration)
    finally:
        services.store.close()


def schema_on(url):
    """Make schema and standard names in an empty database."""
    store = Store(DatabaseSettings(url))
    schema.sync(store.engine)
    store.write(standard_names.sync_standard_names)
    store.close()


def _configuration(folder, url, overrides):
    values = {
        "placement_database.connection": url,
        "placement_database.sqlite_synchronous": False,
        "api.auth_strategy": "noauth2",
    }
    file = configparser.RawConfigParser()
    for name, value in (values | overrides).items():
        group, option = name.split(".", 1)
        if not file.has_section(group):
            file[group] = {}
        file[group][option] = ",".join(value) if isinstance(value, list) else str(value)
    path = folder / "placement.conf"
    with path.open("w") as output:
        file.write(output)
    return config.load(config_files=[str(path)])


def client_of(application, **headers):
    """An HTTP client that calls a WSGI application directly."""
    return httpx.Client(
        transport=httpx.WSGITransport(app=application),
        base_url="http://placement.example",
        headers=HEADERS | headers,
    )


class FakeAdapter(Adapter):
    """Stands in for the adapter of a keystoneauth1 session; `send` returns the response."""

    def __init__(self):
        """Take no session."""

    def request(self, url, method, **options):
        """Send a request as the adapter of a session does."""
        return self.send(method, url, options["headers"], options.get("json"))

    def send(self, method, path, headers, json):
        """Return the response to a request."""
        raise NotImplementedError


class InProcess(FakeAdapter):
    """An adapter to a service in this process.

    Attributes:
        sent: Method and path of each call.
        before: Called with them before a call is sent.
    """

    def __init__(self, http):
        self.sent = []
        self.before = lambda method, path: None
        self._http = http

    def send(self, method, path, headers, json):
        self.sent.append((method, path))
        self.before(method, path)
        return self._http.request(method, path, headers=headers, json=json)


class WithoutExtension(FakeAdapter):
    """An adapter to a service that answers as one without the extension."""

    def __init__(self, adapter, highest="1.39"):
        self._adapter = adapter
        self._highest = highest

    def send(self, method, path, headers, json):
        """Send a request, or answer that there is no extension."""
        if path == "/treeclaim":
            return httpx.Response(404)
        if path == "/":
            return httpx.Response(200, json={"versions": [{"max_version": self._highest}]})
        return self._adapter.send(method, path, headers, json)
