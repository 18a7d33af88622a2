# SPDX-License-Identifier: Apache-2.0
"""A bound is judged before the work that it bounds, wherever a body or a query has one."""

import json

import pytest

from tests.api.raw import send
from tests.service import make_application
from treeclaim.api.protocol.request import validation

VERSION = "1.39, treeclaim 1.0"


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    return make_application(tmp_path_factory.mktemp("bounds"))


def groups(number):
    return "&".join(f"resources_{n}=VCPU:1" for n in range(number)) + "&group_policy=none"


def test_query_with_too_many_groups_is_refused_with_both_numbers(application):
    query = groups(513)
    candidates = json.dumps({"alternatives": [query]}).encode()
    for method, path, text, body in (
        ("GET", "/allocation_candidates", query.encode(), None),
        ("GET", "/allocation_candidates/explain", query.encode(), None),
        ("POST", "/treeclaim/candidates", b"", candidates),
    ):
        answer = send(application, method, path, query=text, body=body, version=VERSION)
        assert answer.status == 400
        assert "513 request groups are more than 512" in answer.detail
    queries = {str(number): f"{groups(512)}&limit={number + 1}" for number in range(129)}
    body = json.dumps({"requests": queries}).encode()
    answer = send(application, "POST", "/treeclaim/capacity", body=body, version=VERSION)
    assert answer.status == 400
    assert "more than 65536 request groups" in answer.detail


def test_queries_of_a_body_are_read_within_the_deadline(tmp_path):
    hasty = make_application(tmp_path, **{"treeclaim.search_seconds": 0.001})
    queries = {str(number): f"{groups(200)}&limit={number + 1}" for number in range(256)}
    body = json.dumps({"requests": queries}).encode()
    answer = send(hasty, "POST", "/treeclaim/capacity", body=body, version=VERSION)
    assert answer.json()["errors"][0]["code"] == "treeclaim.deadline"


@pytest.mark.parametrize(
    ("version", "code"),
    [(VERSION, "treeclaim.deadline"), ("1.39", "placement.undefined_code")],
)
def test_a_search_that_takes_too_long_has_its_code_in_the_extension_alone(tmp_path, version, code):
    """Contract page 98, section 1, rule 3."""
    hasty = make_application(tmp_path, **{"treeclaim.search_seconds": 0.000001})
    host = json.dumps({"name": "host"}).encode()
    send(hasty, "POST", "/resource_providers", body=host)
    query = groups(2).encode()
    answer = send(hasty, "GET", "/allocation_candidates", query=query, version=version)
    assert answer.status == 400
    assert "search_seconds" in answer.detail
    assert answer.json()["errors"][0]["code"] == code


def test_parameters_are_counted_before_parsing(application, monkeypatch):
    monkeypatch.setattr(validation, "parse_qsl", lambda *_, **__: pytest.fail("it was read"))
    for path in ("/resource_providers", "/allocation_candidates", "/treeclaim/totals"):
        answer = send(
            application, "GET", path, query=b"&".join([b"a=1"] * 16_385), version=VERSION
        )
        assert answer.status == 400
        assert "16385 parameters are more than 16384" in answer.detail
