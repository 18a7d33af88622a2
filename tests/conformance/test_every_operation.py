# SPDX-License-Identifier: Apache-2.0
"""Rules that hold for each operation of the API, generated from the table of operations."""

import pytest

from tests.service import client_of, make_application
from treeclaim.api.routes import OPERATIONS

OPT_IN = "placement 1.39, treeclaim 1.0"
UUID = "6f3b1a52-7a7d-4f0e-9a55-0c1c2f7f8a10"
EXTENSION = [operation for operation in OPERATIONS if operation.path.startswith("/treeclaim/")]
WITH_BODY = [
    operation
    for operation in OPERATIONS
    if operation.body is not None and operation.body_until is None
]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a service with one provider."""
    with client_of(make_application(tmp_path_factory.mktemp("operations"))) as client:
        client.headers["x-roles"] = "admin,service"
        assert client.post("/resource_providers", json={"name": "host", "uuid": UUID}).is_success
        yield client


def call(client, operation, version=OPT_IN, **content):
    """Call an operation with plausible variables in its path."""
    path = operation.path.format(
        uuid=UUID, consumer_uuid=UUID, name="CUSTOM_A", resource_class="VCPU", key="CLEANING"
    )
    headers = {"openstack-api-version": version, "content-type": "application/json"}
    return client.request(operation.method, path, headers=headers, **content)


@pytest.mark.parametrize("operation", EXTENSION, ids=lambda operation: operation.name)
@pytest.mark.parametrize("version", ["placement 1.38", "placement 1.39"])
def test_without_the_opt_in_an_operation_of_the_extension_does_not_exist(
    client, operation, version
):
    answer = call(client, operation, version)
    assert answer.status_code == 404
    assert answer.json()["errors"][0]["detail"].endswith(f"OpenStack-API-Version: {OPT_IN}")


@pytest.mark.parametrize("path", sorted({operation.path for operation in EXTENSION}))
def test_a_method_that_a_path_lacks_is_not_allowed(client, path):
    path = path.format(uuid=UUID, name="CUSTOM_A", key="CLEANING")
    answer = client.patch(path, headers={"openstack-api-version": OPT_IN})
    assert answer.status_code == 405


@pytest.mark.parametrize("operation", WITH_BODY, ids=lambda operation: operation.name)
def test_a_malformed_body_is_refused(client, operation):
    for content in (b"", b"{", b"[1,]", b"null", b"7", b'"text"', b'{"no_such_member": 1}'):
        answer = call(client, operation, content=content)
        assert answer.status_code == 400, (content, answer.text)
    unlike = {"content": b"{}", "headers": {"content-type": "text/plain"}}
    assert client.request(operation.method, operation.path, **unlike).status_code in {404, 415}


@pytest.mark.parametrize("unit", ["[]", "0"])
@pytest.mark.parametrize("operation", WITH_BODY, ids=lambda operation: operation.name)
def test_a_body_of_too_many_values_is_not_parsed(client, monkeypatch, operation, unit):
    parsed = "treeclaim.api.protocol.request.validation.orjson.loads"
    monkeypatch.setattr(parsed, lambda _: pytest.fail("it was parsed"))
    most = operation.most_values
    content = ("[" + ",".join([unit] * (most + 2)) + "]").encode()
    answer = call(client, operation, content=content)
    assert answer.status_code == 400
    assert f"more than {most} values" in answer.text


def test_a_path_that_the_extension_lacks_names_the_header_without_the_opt_in(client):
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
        answer = client.request(method, "/treeclaim/else")
        assert answer.status_code == 404
        assert f"OpenStack-API-Version: {OPT_IN}" in answer.json()["errors"][0]["detail"]
    assert "treeclaim" not in client.get("/nowhere").json()["errors"][0]["detail"]
