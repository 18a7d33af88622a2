# SPDX-License-Identifier: Apache-2.0
"""A bound is judged before the work that it bounds, wherever a body or a query has one."""

import json
import time
from itertools import count

import pytest

from tests.api.raw import send
from tests.machine import on_the_machine_of_the_bounds
from tests.service import make_application
from treeclaim.api.protocol.request import validation
from treeclaim.api.resources.candidates import operations
from treeclaim.api.resources.candidates import queries as reading
from treeclaim.api.routes import OPERATIONS

VERSION = "1.39, treeclaim 1.0"
LENGTH = 2_900_000
"""Bytes of a body with too much in it."""

MOST_SECONDS = 0.5
"""Of the processor, for such a body: most of it is what it takes to parse it. Where all of it was read
before it was counted, it was eight."""


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    return make_application(tmp_path_factory.mktemp("bounds"))


def groups(number):
    return "&".join(f"resources_{n}=VCPU:1" for n in range(number)) + "&group_policy=none"


def placing(alternatives):
    owner = {"project_id": "p", "user_id": "u", "consumer_type": "A"}
    consumer = "20000000-0000-4000-8000-000000000001"
    return {"requests": [{"alternatives": alternatives, "consumers": [consumer]} | owner]}


PATHS = {
    "candidates": lambda query: {"alternatives": [query]},
    "capacity": lambda query: {"requests": {"a": query}},
    "placements": lambda query: placing([query]),
}
QUERIES = {
    "groups": groups(LENGTH // 22),
    "the same group again": "resources_1=VCPU:1&" * (LENGTH // 19),
    "required": "resources=VCPU:1" + "&required=CUSTOM_A" * (LENGTH // 18),
    "lists": "resources1=VCPU:1" + "&same_subtree=1" * (LENGTH // 16),
    "strangers": "&".join(f"a{n}=" for n in range(LENGTH // 8)),
}


def spent(application, path, body):
    """Seconds of the processor, the least of three times, and the answer."""
    least = None
    for _ in range(3):
        begun = time.process_time()
        answer = send(application, "POST", path, body=body, version=VERSION)
        seconds = time.process_time() - begun
        least = seconds if least is None else min(least, seconds)
        if least < MOST_SECONDS:
            break
    return least, answer


MANY = LENGTH // 45
TOO_LONG = {
    "alternatives": {"alternatives": [""] * MANY},
    "wrong uuids": {"alternatives": [""], "given": {"release": ["x"] * 10_000}},
    "uuids": {"alternatives": [""], "given": {"without": ["1" * 32] * MANY}},
    "mapping": {
        "alternatives": [""],
        "given": {"place": {str(number): 0 for number in range(MANY)}},
    },
    "unknown members": {str(number): 0 for number in range(MANY)},
}


@pytest.mark.parametrize("kind", TOO_LONG)
def test_too_long_body_is_refused_soon(application, kind):
    body = json.dumps(TOO_LONG[kind]).encode()
    seconds, answer = spent(application, "/treeclaim/candidates", body)
    assert answer.status == 400
    assert len(answer.detail) < 1_000
    assert on_the_machine_of_the_bounds(seconds, MOST_SECONDS) <= MOST_SECONDS


def test_mapping_of_too_many_members_is_refused_soon(application):
    requests = {str(number): 0 for number in range(LENGTH // 12)}
    for path, body, most in (
        ("capacity", {"requests": requests}, 256),
        ("moves", {"goal": {"leave": True}, "requests": requests}, 10_000),
        ("audit", {"living": requests}, 10_000),
    ):
        content = json.dumps(body).encode()
        seconds, answer = spent(application, f"/treeclaim/{path}", content)
        assert f": {len(requests)} are more than {most}" in answer.detail
        assert on_the_machine_of_the_bounds(seconds, MOST_SECONDS) <= MOST_SECONDS


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("noun", PATHS)
def test_a_query_that_is_too_long_is_not_read(application, noun, kind):
    body = json.dumps(PATHS[noun](QUERIES[kind])).encode()
    seconds, answer = spent(application, f"/treeclaim/{noun}", body)
    assert answer.status == 400
    assert on_the_machine_of_the_bounds(seconds, MOST_SECONDS) <= MOST_SECONDS


def test_groups_are_counted_before_parsing(application, monkeypatch):
    read = count()
    monkeypatch.setattr(
        "treeclaim.api.resources.candidates.parameters._groups", lambda *_: next(read)
    )
    for path, body, query in (
        ("/allocation_candidates", None, groups(513).encode()),
        ("/allocation_candidates/explain", None, groups(513).encode()),
        ("/treeclaim/candidates", PATHS["candidates"](groups(513)), b""),
    ):
        answer = send(
            application,
            "GET" if body is None else "POST",
            path,
            query=query,
            body=None if body is None else json.dumps(body).encode(),
            version=VERSION,
        )
        assert answer.status == 400
        assert "513 request groups are more than 512" in answer.detail
    assert next(read) == 0


def test_groups_of_all_queries_are_counted_before_any_is_read(application, monkeypatch):
    read = []
    monkeypatch.setattr(reading, "request_of", lambda *query: read.append(query))
    queries = {str(number): f"{groups(512)}&limit={number + 1}" for number in range(129)}
    body = json.dumps({"requests": queries}).encode()
    answer = send(application, "POST", "/treeclaim/capacity", body=body, version=VERSION)
    assert answer.status == 400
    assert "more than 65536 request groups" in answer.detail
    assert not read


def queries_read(monkeypatch):
    """A list that gets each query of a body when it is read."""
    read = []
    real = operations.request_of

    def noted(query, *others):
        read.append(query)
        return real(query, *others)

    monkeypatch.setattr(reading, "request_of", noted)
    return read


def test_many_queries_are_read_within_the_deadline(tmp_path, monkeypatch):
    read = queries_read(monkeypatch)
    hasty = make_application(tmp_path, **{"treeclaim.search_seconds": 0.001})
    queries = [f"{groups(200)}&limit={number + 1}" for number in range(256)]
    for noun, body in (
        ("capacity", {"requests": {str(n): query for n, query in enumerate(queries)}}),
        ("placements", placing(queries[:16])),
    ):
        read.clear()
        content = json.dumps(body).encode()
        answer = send(hasty, "POST", f"/treeclaim/{noun}", body=content, version=VERSION)
        assert answer.json()["errors"][0]["code"] == "treeclaim.deadline"
    assert len(read) < 16


def test_repeated_query_text_is_parsed_once(application, monkeypatch):
    read = queries_read(monkeypatch)
    content = json.dumps({"alternatives": [groups(40)] * 16}).encode()
    answer = send(application, "POST", "/treeclaim/candidates", body=content, version=VERSION)
    assert answer.status == 200
    assert len(read) == 1


UUID = "10000000-0000-4000-8000-000000000001"
WITH_BODY = [
    operation
    for operation in OPERATIONS
    if operation.body is not None and operation.body_until is None
]


@pytest.mark.parametrize("unit", ["[]", "0"])
@pytest.mark.parametrize("operation", WITH_BODY, ids=lambda operation: operation.name)
def test_a_body_of_too_many_values_is_not_parsed(application, monkeypatch, operation, unit):
    most = operation.most_values
    host = json.dumps({"name": "host", "uuid": UUID}).encode()
    send(application, "POST", "/resource_providers", body=host)
    path = operation.path.format(
        uuid=UUID, consumer_uuid=UUID, name="CUSTOM_A", resource_class="VCPU", key="CLEANING"
    )
    parsed = "treeclaim.api.protocol.request.validation.orjson.loads"
    monkeypatch.setattr(parsed, lambda _: pytest.fail("it was parsed"))
    body = ("[" + ",".join([unit] * (most + 2)) + "]").encode()
    answer = send(application, operation.method, path, body=body, version=VERSION)
    assert answer.status == 400
    assert f"more than {most} values" in answer.detail


def test_parameters_are_counted_before_parsing(application, monkeypatch):
    monkeypatch.setattr(validation, "parse_qsl", lambda *_, **__: pytest.fail("it was read"))
    for path in ("/resource_providers", "/allocation_candidates", "/treeclaim/totals"):
        answer = send(
            application, "GET", path, query=b"&".join([b"a=1"] * 16_385), version=VERSION
        )
        assert answer.status == 400
        assert "16385 parameters are more than 16384" in answer.detail
