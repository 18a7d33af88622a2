# SPDX-License-Identifier: Apache-2.0
"""Mixes over HTTP (contract page 101, section 2)."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tests.databases import EACH_DATABASE
from tests.service import client_of, fresh_database_on, start_on
from treeclaim.model.errors import MixesFullError
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations import mixes
from treeclaim.store.schema.tables import MOST_MIXES

EXTENDED = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
SMALL = {"query": "resources=VCPU:1", "weight": 1}
LARGE = {"query": "resources1=VCPU:4&required1=HW_CPU_X86_AVX2&can_split=", "weight": 1_000_000}
LARGE_IN_PARTS = {"query": "resources=VCPU:4&can_split=VCPU&root_required=!STORAGE_DISK_SSD"}


@pytest.fixture(scope="module", params=EACH_DATABASE)
def url(request, tmp_path_factory):
    with fresh_database_on(request.param, tmp_path_factory.mktemp("database")) as made:
        yield made


@pytest.fixture(scope="module")
def clients(url, tmp_path_factory):
    """Two services on one database."""
    with (
        start_on(url, tmp_path_factory.mktemp("one")) as one,
        start_on(url, tmp_path_factory.mktemp("other")) as other,
    ):
        yield client_of(one, **EXTENDED), client_of(other, **EXTENDED)


@pytest.fixture
def client(clients):
    """A client of one of them, without any mix."""
    for name in clients[0].get("/treeclaim/mixes").json()["mixes"]:
        assert clients[0].delete(f"/treeclaim/mixes/{name}").status_code == 204
    return clients[0]


def put(client, name, requests, status=204):
    answer = client.put(f"/treeclaim/mixes/{name}", json={"requests": requests})
    assert answer.status_code == status, answer.text
    return answer


def refusal(answer):
    """What an error says, without the sentence that all of its status begin with."""
    (error,) = answer.json()["errors"]
    return error["detail"].split("\n\n ")[-1].strip()


def test_what_was_put_is_shown_by_every_worker_at_once(client, clients):
    body = {"gpu-large": SMALL, "größer \U0001f600": {**LARGE_IN_PARTS, "weight": 3}}
    assert put(client, "day", body).content == b""
    for one in clients:
        answer = one.get("/treeclaim/mixes/day")
        assert answer.json() == {"requests": body}
        assert answer.headers["cache-control"] == "no-cache"
        assert one.get("/treeclaim/mixes").json() == {"mixes": {"day": {"requests": body}}}
    put(clients[1], "day", {"other": SMALL})
    assert client.get("/treeclaim/mixes/day").json() == {"requests": {"other": SMALL}}
    # The same again changes nothing, and is no error.
    put(client, "day", {"other": SMALL})
    assert clients[1].delete("/treeclaim/mixes/day").status_code == 204
    for one in clients:
        assert one.get("/treeclaim/mixes").json() == {"mixes": {}}
        for method in ("GET", "DELETE"):
            answer = one.request(method, "/treeclaim/mixes/day")
            assert (answer.status_code, refusal(answer)) == (404, "No mix named day found.")


def test_names_differ_by_case_and_are_of_one_form(client):
    names = ["A", "a", "a.b_c-D9", "z" * 64]
    for name in names:
        put(client, name, {name: SMALL})
    assert list(client.get("/treeclaim/mixes").json()["mixes"]) == sorted(names)
    assert client.get("/treeclaim/mixes/A").json() == {"requests": {"A": SMALL}}
    assert client.delete("/treeclaim/mixes/A").status_code == 204
    assert client.get("/treeclaim/mixes/a").json() == {"requests": {"a": SMALL}}
    for name in ("z" * 65, "a%20b", "a:b", "%C3%A4", "a%0A", "%00"):
        assert "Invalid name of a mix" in refusal(put(client, name, {"a": SMALL}, 400))
        for method in ("GET", "DELETE"):
            assert client.request(method, f"/treeclaim/mixes/{name}").status_code == 404


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        ({}, "requests: 0 are fewer than 1"),
        ({str(number): SMALL for number in range(65)}, "requests: 65 are more than 64"),
        ({"a": {"query": "resources=VCPU:1"}}, "requests.a: 'weight' is required"),
        ({"a": {"weight": 1}}, "requests.a: 'query' is required"),
        ({"a": {**SMALL, "weight": 0}}, "requests.a.weight: 0 is less than 1"),
        ({"a": {**SMALL, "weight": 1_000_001}}, "requests.a.weight: 1000001 is more than 1000000"),
        ({"a": {**SMALL, "weight": 1.5}}, "requests.a.weight: 1.5 is not an integer"),
        ({"a": {**SMALL, "more": 1}}, "requests.a: unknown 'more'"),
        ({"a": {**SMALL, "query": ""}}, "requests.a: "),
        ({"a": SMALL, "b": {**SMALL, "query": "resources=VCPU:0"}}, "requests.b: "),
        ({"a": {**SMALL, "query": "resources=CUSTOM_GONE:1"}}, "requests.a: Invalid resource class"),
        ({"a": {**SMALL, "query": "resources=VCPU:1&required=CUSTOM_GONE"}}, "requests.a: No such"),
        ({"a\n\x1b[0m": {**SMALL, "query": "x"}}, "requests.a\\n\\x1b[0m: "),
        ({"a": {**SMALL, "query": "resources=VCPU:1&required=" + "A," * 140_000}}, "longer than"),
    ],
)  # fmt: skip
def test_what_is_no_mix_is_refused_with_the_place_and_nothing_is_kept(client, requests, words):
    assert words in refusal(put(client, "day", requests, 400))
    assert client.get("/treeclaim/mixes").json() == {"mixes": {}}


@pytest.mark.parametrize(
    "more",
    ["order_by=pack", "preferred=HW_CPU_X86_AVX2", "limit=3", "from_holds=" + "1" * 32],
)
def test_queries_say_what_is_needed_alone(client, more):
    query = f"resources=VCPU:1&{more}"
    answer = put(client, "day", {"a": SMALL, "b": {**SMALL, "query": query}}, 400)
    assert refusal(answer).startswith("requests.b: Invalid query string parameters: a mix has no")
    assert answer.json()["errors"][0]["code"] == "placement.query.bad_value"


def test_the_largest_mix_is_kept(client):
    query = "resources=VCPU:1&required=" + ",".join(["HW_CPU_X86_AVX2"] * 200)
    body = {str(number): {"query": query, "weight": 9} for number in range(64)}
    assert 200_000 < len(json.dumps({"requests": body})) < 262_144
    put(client, "day", body)
    assert client.get("/treeclaim/mixes/day").json() == {"requests": body}


def test_there_are_64_mixes_at_most(client):
    for number in range(MOST_MIXES):
        put(client, f"mix-{number}", {"a": SMALL})
    answer = put(client, "more", {"a": SMALL}, 409)
    assert answer.json()["errors"][0]["code"] == "treeclaim.mixes"
    put(client, "mix-5", {"b": SMALL})
    assert client.delete("/treeclaim/mixes/mix-9").status_code == 204
    put(client, "more", {"a": SMALL})
    assert MOST_MIXES == 64 == len(client.get("/treeclaim/mixes").json()["mixes"])


def test_below_1_3_there_is_no_such_path(client):
    old = {"openstack-api-version": "placement 1.39"}
    put(client, "day", {"a": SMALL})
    for method, path in (
        ("GET", "/treeclaim/mixes"),
        ("GET", "/treeclaim/mixes/day"),
        ("PUT", "/treeclaim/mixes/day"),
        ("DELETE", "/treeclaim/mixes/day"),
    ):
        for headers in (old, {"openstack-api-version": "placement 1.39"}):
            assert client.request(method, path, headers=headers).status_code == 404, method
    assert client.get("/treeclaim/mixes/day").status_code == 200


@pytest.mark.parametrize("kind", EACH_DATABASE)
def test_of_many_who_make_mixes_at_once_no_more_succeed_than_there_may_be(kind, tmp_path):
    with (
        fresh_database_on(kind, tmp_path) as url,
        closing(Store(DatabaseSettings(url))) as one,
        closing(Store(DatabaseSettings(url))) as other,
    ):
        for number in range(MOST_MIXES - 4):
            one.write(mixes.put, f"mix-{number}", {})

        def attempt(number):
            try:
                (one, other)[number % 2].write(mixes.put, f"late-{number}", {})
            except MixesFullError:
                return False
            return True

        with ThreadPoolExecutor(12) as threads:
            done = list(threads.map(attempt, range(12)))
        assert done.count(True) == 4
        kept = one.read(mixes.every)
        assert len(kept) == MOST_MIXES
        assert {f"late-{number}" for number in range(12) if done[number]} < kept.keys()
