# SPDX-License-Identifier: Apache-2.0
"""Two workers on one database: each shows at once what the other has written."""

import pytest

from tests.databases import EACH_DATABASE
from tests.service import client_of, fresh_database_on, start_on

HOST = "10000000-0000-4000-8000-000000000001"
RACK = "20000000-0000-4000-8000-000000000001"
ATTRIBUTES = f"/treeclaim/providers/{HOST}/attributes"
BULK = "/treeclaim/providers?include=attributes"
NAMES = "/treeclaim/aggregates/names"
TEXTS = (
    "\N{GRINNING FACE}" * 255,
    "'\"`\\ \\u0000 %s {n} ; -- <b>",
    "\N{RIGHT-TO-LEFT OVERRIDE}\N{HEBREW LETTER ALEF}",
    "\U00020000\U0010fffd",
    "\N{LINE SEPARATOR}\N{ZERO WIDTH SPACE}\xa0",
    " ",
)
"""Texts that a database may change or refuse."""


@pytest.fixture(scope="module", params=EACH_DATABASE)
def clients(request, tmp_path_factory):
    """Clients of two services on one database with a host."""
    folders = [tmp_path_factory.mktemp(name) for name in ("database", "one", "other")]
    version = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
    with (
        fresh_database_on(request.param, folders[0]) as url,
        start_on(url, folders[1]) as one,
        start_on(url, folders[2]) as other,
    ):
        clients = client_of(one, **version), client_of(other, **version)
        entry = {"uuid": HOST, "name": "host"}
        answer = clients[0].post("/treeclaim/providers", json={"providers": [entry]})
        assert answer.status_code == 200, answer.text
        yield clients


def put_attributes(client, value):
    """Write attributes at the present generation."""
    generation = client.get(ATTRIBUTES).json()["resource_provider_generation"]
    body = {"resource_provider_generation": generation, "attributes": {"value": value}}
    assert client.put(ATTRIBUTES, json=body).status_code == 200


@pytest.mark.parametrize("value", [1, True, "true", "1", 1.0, 2**53 - 1, *TEXTS], ids=ascii)
def test_attributes_are_shown_by_each_worker(clients, value):
    for writer in clients:
        put_attributes(writer, "something else")
        put_attributes(writer, value)
        for reader in clients:
            (provider,) = reader.get(BULK).json()["providers"]
            for shown in (reader.get(ATTRIBUTES).json(), provider):
                assert repr(shown["attributes"]) == repr(
                    {"value": int(value) if isinstance(value, float) else value}
                )


def test_names_of_aggregates_are_shown_by_each_worker(clients):
    for writer in clients:
        for name in ("rack 7", *TEXTS):
            assert writer.post(NAMES, json={"names": {RACK: name}}).status_code == 204
            assert [client.get(NAMES).json()["names"] for client in clients] == [{RACK: name}] * 2
        assert writer.post(NAMES, json={"names": {RACK: None}}).status_code == 204
        assert [client.get(NAMES).json()["names"] for client in clients] == [{}, {}]
