# SPDX-License-Identifier: Apache-2.0
"""Names of aggregates over HTTP."""

import base64

import pytest

from tests.api.resources.extension.clouds import uuid_of
from tests.databases import EACH_DATABASE
from tests.service import client_of, fresh_database_on, start_on

EXTENDED = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
PATH = "/treeclaim/aggregates/names"
UUIDS = sorted(uuid_of(f"aggregate {number}") for number in range(5))
ODD = "rack \N{GRINNING FACE} ä\x00\n'\"\\ %s \N{LINE SEPARATOR}"


@pytest.fixture(scope="module", params=EACH_DATABASE)
def clients(request, tmp_path_factory):
    """Two services on one database."""
    folders = [tmp_path_factory.mktemp(name) for name in ("database", "one", "other")]
    with (
        fresh_database_on(request.param, folders[0]) as url,
        start_on(url, folders[1]) as one,
        start_on(url, folders[2]) as other,
    ):
        yield client_of(one, **EXTENDED), client_of(other, **EXTENDED)


@pytest.fixture
def client(clients):
    """A client of one of them, without any name."""
    there = clients[0].get(PATH).json()["names"]
    if there:
        name(clients[0], dict.fromkeys(there))
    return clients[0]


def name(client, names, status=204):
    answer = client.post(PATH, json={"names": names})
    assert answer.status_code == status, answer.text
    return answer


def names(client, query=""):
    answer = client.get(PATH + query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-cache"
    return answer.json()


def test_any_text_is_a_name_and_every_worker_shows_it_at_once(client, clients):
    given = {UUIDS[0]: ODD, UUIDS[1]: "x" * 255, UUIDS[2]: "\N{GRINNING FACE}" * 255}
    assert name(client, given).content == b""
    for one in clients:
        assert names(one) == {"names": given, "links": []}
    name(clients[1], {UUIDS[0]: "rack 7", UUIDS[1]: None, UUIDS[3]: None})
    for one in clients:
        assert names(one)["names"] == {UUIDS[0]: "rack 7", UUIDS[2]: given[UUIDS[2]]}


def test_a_uuid_is_the_same_however_it_is_spelled(client):
    name(client, {UUIDS[0].upper(): "one"})
    name(client, {UUIDS[0]: "two"})
    assert names(client)["names"] == {UUIDS[0]: "two"}
    assert names(client, f"?uuid={UUIDS[0].upper()}")["names"] == {UUIDS[0]: "two"}
    name(client, {UUIDS[1]: "a", UUIDS[1].upper(): "b"})
    assert names(client)["names"] == {UUIDS[0]: "two", UUIDS[1]: "b"}


def test_names_come_in_pages(client):
    given = {uuid: f"rack {number}" for number, uuid in enumerate(UUIDS)}
    name(client, given)
    for query in ("", f"&uuid=in:{','.join(reversed(UUIDS))}"):
        found, path = {}, f"{PATH}?limit=2{query}"
        sizes = []
        while path:
            page = client.get(path).json()
            sizes.append(len(page["names"]))
            found |= page["names"]
            path = next((link["href"] for link in page["links"]), None)
        assert (found, sizes) == (given, [2, 2, 1])
    assert names(client, f"?uuid=in:{UUIDS[1]},{uuid_of('unnamed')}")["names"] == {
        UUIDS[1]: "rack 1"
    }


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"rack-7": "rack 7"},
        {"-" * 36: "rack 7"},
        {UUIDS[0]: ""},
        {UUIDS[0]: "x" * 256},
        {UUIDS[0]: 7},
        {UUIDS[0]: "fine", UUIDS[1]: ["no"]},
        {f"{number:08}-0000-4000-8000-000000000000": "x" for number in range(10_001)},
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_kept(client, given):
    name(client, given, 400)
    assert names(client)["names"] == {}


@pytest.mark.parametrize("behind", ["names:rack", "names:\0", f"holds:{UUIDS[0]}"])
def test_a_marker_that_the_list_never_gave_is_refused(client, behind):
    marker = base64.urlsafe_b64encode(behind.encode()).decode().rstrip("=")
    answer = client.get(f"{PATH}?marker={marker}")
    assert answer.status_code == 400
    assert "Invalid marker" in answer.text


def test_ten_thousand_are_named_by_one_call(client):
    given = {f"{number:08}-0000-4000-8000-000000000000": f"{number}" for number in range(10_000)}
    name(client, given)
    assert names(client, "?limit=10000") == {"names": given, "links": []}
    name(client, dict.fromkeys(given))
    assert names(client)["names"] == {}
