# SPDX-License-Identifier: Apache-2.0
"""A write waits for its own transaction and for nothing else.

The Forest may be far behind, or busy. A write that asked it for a date or a name would wait until
it has caught up with everything that others have committed.
"""

import json

import pytest

from tests.api.raw import send
from tests.bodies import claim_of
from tests.service import services_on
from treeclaim.api.admission import WaitKind
from treeclaim.api.routes import OPERATIONS, find
from treeclaim.gate import Gate
from treeclaim.replica import Replica
from treeclaim.replica.following import Follower

HOST, SPARE, NEW = (f"10000000-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))
CONSUMER, OTHER = (f"20000000-0000-4000-8000-00000000000{number}" for number in (1, 2))

OF_HOST = f"/resource_providers/{HOST}"


def generation(number):
    return {"resource_provider_generation": number}


def claimed(amount, generation_of_consumer):
    return claim_of(
        {HOST: {"resources": {"VCPU": amount}}},
        project_id="project",
        user_id="user",
        consumer_generation=generation_of_consumer,
    )


WRITES = [
    ("POST", "/resource_providers", {"name": "new", "uuid": NEW}),
    ("PUT", f"/resource_providers/{SPARE}", {"name": "renamed"}),
    (
        "POST",
        f"/resource_providers/{SPARE}/inventories",
        {"resource_class": "VCPU", "total": 1},
    ),
    ("PUT", f"{OF_HOST}/inventories/VCPU", generation(1) | {"total": 9}),
    ("PUT", f"{OF_HOST}/inventories", generation(2) | {"inventories": {"VCPU": {"total": 8}}}),
    ("DELETE", f"/resource_providers/{SPARE}/inventories/VCPU", None),
    ("DELETE", f"/resource_providers/{SPARE}/inventories", None),
    ("PUT", f"{OF_HOST}/aggregates", generation(3) | {"aggregates": [SPARE]}),
    ("PUT", "/traits/CUSTOM_NEW", None),
    ("PUT", f"{OF_HOST}/traits", generation(4) | {"traits": ["CUSTOM_NEW"]}),
    ("DELETE", f"{OF_HOST}/traits", None),
    ("DELETE", "/traits/CUSTOM_NEW", None),
    ("POST", "/resource_classes", {"name": "CUSTOM_NEW"}),
    ("PUT", "/resource_classes/CUSTOM_OTHER", None),
    ("DELETE", "/resource_classes/CUSTOM_OTHER", None),
    ("PUT", f"/allocations/{CONSUMER}", claimed(1, None)),
    ("POST", "/allocations", {CONSUMER: claimed(2, 1), OTHER: claimed(1, None)}),
    ("DELETE", f"/allocations/{OTHER}", None),
    (
        "POST",
        "/reshaper",
        {
            "inventories": {HOST: generation(8) | {"inventories": {"VCPU": {"total": 8}}}},
            "allocations": {CONSUMER: claimed(3, 2)},
        },
    ),
    ("DELETE", f"/resource_providers/{NEW}", None),
]
"""Requests in their order."""


@pytest.fixture
def busy(tmp_path, monkeypatch):
    """A service whose Forest must not be used."""
    monkeypatch.setattr(Replica, "keep_up", lambda _replica: None)
    with services_on(tmp_path) as (services, application):
        for uuid, name in ((HOST, "host"), (SPARE, "spare")):
            body = json.dumps({"name": name, "uuid": uuid}).encode()
            assert send(application, "POST", "/resource_providers", body=body).status == 200
        body = json.dumps(generation(0) | {"inventories": {"VCPU": {"total": 8}}}).encode()
        assert send(application, "PUT", f"{OF_HOST}/inventories", body=body).status == 200

        def refuse(*_args, **_kwargs):
            raise AssertionError("a write has used the Forest")

        monkeypatch.setattr(Follower, "catch_up", refuse)
        monkeypatch.setattr(services.replica, "turn", Gate(0))
        yield application


def test_writes_avoid_the_forest(busy):
    for method, path, document in WRITES:
        body = None if document is None else json.dumps(document).encode()
        answer = send(busy, method, path, body=body)
        assert answer.status < 300, (method, path, answer.body)


def test_every_placement_write_operation_is_covered():
    tried = {find(path).operations[method] for method, path, _ in WRITES}
    writing = {operation for operation in OPERATIONS if operation.kind is WaitKind.WRITE}
    # To find places is what this one is for.
    tried.add(find("/treeclaim/placements").operations["POST"])
    own = {one for one in writing if one.path.startswith("/treeclaim/")}
    assert {(one.method, one.path) for one in writing - own - tried} == set()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", ""),
        ("POST", "/inventories"),
        ("PUT", "/inventories"),
        ("PUT", "/inventories/VCPU"),
        ("PUT", "/aggregates"),
    ],
)
def test_unknown_provider_is_reported_before_body_errors(busy, method, path):
    for body in (b"{}", b"{"):
        answer = send(busy, method, f"/resource_providers/{NEW}{path}", body=body)
        assert answer.status == 404, answer.body
        answer = send(busy, method, f"{OF_HOST}{path}", body=body)
        assert answer.status == 400, answer.body
