# SPDX-License-Identifier: Apache-2.0
"""The client against a real service."""

import uuid

import pytest
from httpx import Response

from tests.bodies import add_hosts
from tests.service import FakeAdapter, InProcess, WithoutExtension, client_of, make_application
from treeclaim.client import (
    CandidateQuery,
    Client,
    ClientError,
    ConsumerExistsError,
    LostConnectionError,
    UnsupportedFeatureError,
)
from treeclaim.model.microversions import EXTENSION_MINOR

HOST = str(uuid.UUID(int=1))
OWNER = {"project_id": "p", "user_id": "u"}


@pytest.fixture
def application(tmp_path):
    """A service with a host of four VCPU."""
    made = make_application(tmp_path)
    with client_of(made) as client:
        add_hosts(client, HOST, VCPU=4)
    return made


def held(client, consumer):
    """Return the amounts that a consumer holds, by provider and resource class."""
    allocations = client.get(f"/allocations/{consumer}")["allocations"]
    return {provider: allocation["resources"] for provider, allocation in allocations.items()}


@pytest.fixture
def adapter(application):
    return InProcess(client_of(application))


@pytest.fixture
def client(adapter):
    return Client(adapter=adapter)


CANDIDATE = {"allocations": {HOST: {"resources": {"VCPU": 2}}}}


def test_a_candidate_is_claimed_and_released(client):
    (candidate,) = client.candidates("resources=VCPU:2")["allocation_requests"]
    consumer = str(uuid.uuid4())
    client.claim(consumer, candidate, **OWNER)
    assert held(client, consumer) == {HOST: {"VCPU": 2}}
    client.claim(consumer, CANDIDATE, replace=True, **OWNER)
    assert client.release(consumer) is True
    assert held(client, consumer) == {}
    assert client.release(consumer) is False


def test_a_consumer_may_have_no_type(client):
    consumer = str(uuid.uuid4())
    client.claim(consumer, CANDIDATE, project_id="p", user_id="u", consumer_type=None)
    assert client.get(f"/allocations/{consumer}")["consumer_type"] == "unknown"


def test_unsupported_features_are_refused_before_sending(adapter):
    client = Client(adapter=WithoutExtension(adapter))
    with pytest.raises(
        UnsupportedFeatureError,
        match=r"explain needs treeclaim 1\.0, but the server has placement 1\.39 only",
    ):
        client.explain("resources=VCPU:1")
    assert adapter.sent == []


def test_server_with_too_old_version_is_refused(adapter):
    client = Client(adapter=WithoutExtension(adapter, "1.38"))
    with pytest.raises(UnsupportedFeatureError, match=r"needs placement 1\.39, .* 1\.38 only"):
        client.candidates("resources=VCPU:1")
    assert adapter.sent == []


def test_extension_header_is_sent_when_needed(client):
    assert client.extension == EXTENSION_MINOR
    assert client.explain("resources=VCPU:100")["feasible"] is False
    assert client.candidates("resources=VCPU:3&can_split=VCPU")["allocation_requests"]


def test_conflicting_claim_is_retried(application, client, adapter):
    consumer = str(uuid.uuid4())
    rival = Client(adapter=InProcess(client_of(application)))
    conflicts = [1, 2]

    def interfere(method, path):
        if method == "PUT" and conflicts:
            amount = conflicts.pop()
            candidate = {"allocations": {HOST: {"resources": {"VCPU": amount}}}}
            rival.claim(consumer, candidate, replace=True, project_id="p", user_id="u")

    adapter.before = interfere
    client.claim(consumer, CANDIDATE, replace=True, **OWNER)
    assert held(client, consumer) == {HOST: {"VCPU": 2}}
    assert [method for method, _ in adapter.sent].count("PUT") == 3


def test_claim_without_room_is_not_retried(client, adapter):
    with pytest.raises(ClientError, match="409"):
        client.claim(
            str(uuid.uuid4()), {"allocations": {HOST: {"resources": {"VCPU": 5}}}}, **OWNER
        )
    assert [method for method, _ in adapter.sent].count("PUT") == 1


def test_foreign_endpoint_raises_client_error():
    class Elsewhere(FakeAdapter):
        def send(self, *_arguments):
            return Response(200, text="<html>")

    with pytest.raises(ClientError, match="not the version document"):
        Client(adapter=Elsewhere()).candidates("resources=VCPU:1")


def test_a_claim_keeps_its_query_as_the_request(client):
    query = "resources=VCPU:2"
    (candidate,) = client.candidates(query)["allocation_requests"]
    for request in (query, [query], CandidateQuery.parsed(query)):
        consumer = str(uuid.uuid4())
        client.claim(consumer, candidate, request=request, **OWNER)
        document = client.call("GET", f"/allocations/{consumer}", extended=True)
        assert (document["request"], document["request_valid"]) == ([query], True)
        client.release(consumer)


def test_stored_request_omits_holds_and_needs_the_extension(client):
    consumer = str(uuid.uuid4())
    query = "resources=VCPU:2&from_holds=" + str(uuid.uuid4())
    client.claim(consumer, CANDIDATE, request=query, **OWNER)
    document = client.call("GET", f"/allocations/{consumer}", extended=True)
    assert document["request"] == ["resources=VCPU:2"]
    without = Client(adapter=WithoutExtension(client._adapter))
    without.claim(
        consumer, CANDIDATE, request="resources=VCPU:2", replace=True, project_id="p", user_id="u"
    )
    # A request beyond the bound of the server is forgotten, like that of a placement.
    client.claim(consumer, CANDIDATE, request=["resources=VCPU:2" * 2000], replace=True, **OWNER)
    document = client.call("GET", f"/allocations/{consumer}", extended=True)
    assert document["request"] is None


def test_second_claim_of_a_consumer_requires_replace(client):
    consumer = str(uuid.uuid4())
    client.claim(consumer, CANDIDATE, **OWNER)
    with pytest.raises(ConsumerExistsError):
        client.claim(consumer, CANDIDATE, project_id="other", user_id="other")
    assert client.get(f"/allocations/{consumer}")["project_id"] == OWNER["project_id"]


@pytest.mark.parametrize("is_committed", [False, True])
def test_claim_with_lost_response_is_repeated_after_its_outcome_is_read(
    client, adapter, is_committed
):
    consumer = str(uuid.uuid4())
    inner, sent = adapter.send, []

    def lose_first_claim(method, path, headers, json):
        if method != "PUT" or sent:
            return inner(method, path, headers, json)
        sent.append(path)
        if is_committed:
            inner(method, path, headers, json)
        raise LostConnectionError("lost")

    adapter.send = lose_first_claim
    client.claim(consumer, CANDIDATE, **OWNER)
    assert held(client, consumer) == {HOST: {"VCPU": 2}}
    assert client.get(f"/resource_providers/{HOST}/usages")["usages"] == {"VCPU": 2}
