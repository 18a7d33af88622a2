# SPDX-License-Identifier: Apache-2.0
"""Requests that need no token look-up do not wait for one; the identity service is held by the tests."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from tests.api.middleware.identity_service import GOOD, identity_service
from tests.keystone.service import memcached_server
from tests.server.fronts import running
from tests.servers import NO_CERTIFICATES, eventually
from tests.service import client_of, make_application
from tests.silence import never_answering, not_there
from treeclaim.api import admission
from treeclaim.api.middleware import tokens

CLIENTS = 64
SEARCH = "/allocation_candidates?resources=VCPU:1"


@pytest.fixture
def identity():
    with identity_service() as service:
        yield service


@pytest.fixture
def clients(identity):
    """Threads that end before the identity service does."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        yield pool
        identity.release()


_KEPT = []
"""Applications with connections to memcached: the library never closes them, so no collector may find them."""


@contextmanager
def served(identity, folder, threads=4, memcached=None):
    """The service behind it, in the server of `treeclaim serve`; yields an HTTP client."""
    options = identity.options() | {"treeclaim.server_threads": str(threads)}
    if memcached is not None:
        options["keystone_authtoken.memcached_servers"] = memcached
    application = make_application(folder, **options)
    if memcached is not None:
        _KEPT.append(application)
    with (
        running(application, threads) as server,
        httpx.Client(
            base_url="http://{}:{}".format(*server.address),
            headers={"openstack-api-version": "placement 1.39"},
            timeout=60,
            verify=NO_CERTIFICATES,
            limits=httpx.Limits(max_connections=None),
        ) as http,
    ):
        yield http


def asking(http, token, path="/resource_providers"):
    """The answer to a read with a token."""
    return http.get(path, headers={"x-auth-token": token})


@pytest.mark.slow
def test_silent_keystone_delays_only_unknown_tokens(identity, clients, tmp_path):
    with served(identity, tmp_path, threads=8) as http:
        assert asking(http, GOOD).status_code == 200
        identity.hold()
        strangers = [clients.submit(asking, http, f"bad-{number}") for number in range(CLIENTS)]
        # Four are looked up, and two wait; the others are refused.
        eventually(
            lambda: sum(stranger.done() for stranger in strangers) == CLIENTS - 6,
            "the others are refused",
        )
        # The identity service answers only after these responses.
        for _ in range(3):
            assert http.get("/").status_code == 200
            assert asking(http, GOOD, SEARCH).status_code == 200
            assert http.get("/resource_providers").status_code == 401
        assert len(identity.asked) == 1 + 4, "half of the threads look tokens up"
        refused = asking(http, "bad")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json()["errors"][0]["status"] == 503
        assert refused.headers["x-openstack-request-id"].startswith("req-")
        identity.release()
        assert (
            sorted(stranger.result().status_code for stranger in strangers)
            == [401] * 6 + [503] * 58
        )


def test_burst_of_new_tokens_is_accepted_while_keystone_answers(identity, clients, tmp_path):
    with served(identity, tmp_path, threads=8) as http:
        callers = [clients.submit(asking, http, f"{GOOD}-{number}") for number in range(CLIENTS)]
        assert {caller.result().status_code for caller in callers} == {200}
    assert len(identity.asked) == CLIENTS


@pytest.mark.slow
def test_token_validation_that_waits_too_long_returns_503(
    identity, clients, tmp_path, monkeypatch
):
    monkeypatch.setattr(admission, "LONGEST_WAIT", 0.3)
    with served(identity, tmp_path) as http:
        identity.hold()
        callers = [clients.submit(asking, http, f"{GOOD}-{number}") for number in range(2)]
        eventually(lambda: len(identity.asked) == 2, "two are looked up")
        refused = asking(http, GOOD)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        identity.release()
        assert [caller.result().status_code for caller in callers] == [200, 200]
        assert asking(http, GOOD).status_code == 200


def test_missing_token_names_keystone_without_a_request_to_it(tmp_path, identity):
    """Without `www_authenticate_uri` the header has the URL that the service itself uses."""
    options = identity.options()
    del options["keystone_authtoken.www_authenticate_uri"]
    identity.hold()
    with client_of(make_application(tmp_path, **options)) as http:
        del http.headers["x-auth-token"]
        refused = http.get("/resource_providers")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == f'Keystone uri="{identity.url}"'
    assert identity.asked == []


@pytest.mark.slow
def test_validated_token_is_shared_between_threads(identity, clients, tmp_path):
    """Concurrent requests with one token share a single look-up."""
    with served(identity, tmp_path, threads=8) as http:
        assert asking(http, GOOD).status_code == 200
        begin = threading.Barrier(16)

        def ask():
            begin.wait()
            return [asking(http, GOOD, "/traits").status_code for _ in range(10)]

        callers = [clients.submit(ask) for _ in range(16)]
        statuses = {status for caller in callers for status in caller.result()}
    assert statuses == {200}
    assert identity.asked == [GOOD]


SILENT = {"accepts and never answers": never_answering, "drops what is sent": not_there}


# The library leaves a socket that could not be connected to Python.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", SILENT)
def test_cached_token_does_not_wait_for_a_silent_memcached(identity, clients, tmp_path, kind):
    with ExitStack() as stack:
        silent = stack.enter_context(SILENT[kind]())
        address = silent if isinstance(silent, str) else silent[0]
        http = stack.enter_context(served(identity, tmp_path, memcached=address))
        assert asking(http, GOOD).status_code == 200
        # More look-ups than threads are pending, and none is answered.
        identity.hold()
        callers = [clients.submit(asking, http, f"{GOOD}-{number}") for number in range(16)]
        eventually(lambda: len(identity.asked) > 1, "they are looked up")
        assert asking(http, GOOD, SEARCH).status_code == 200
        identity.release()
        assert {caller.result().status_code for caller in callers} == {200, 503}


@pytest.mark.slow
def test_silent_memcached_is_not_retried_at_once(identity, tmp_path):
    with (
        never_answering() as (address, connections),
        served(identity, tmp_path, memcached=address) as http,
    ):
        for number in range(8):
            assert asking(http, f"{GOOD}-{number}").status_code == 200
        assert len(connections) == 1


@pytest.mark.slow
def test_token_validated_by_another_process_is_cached_briefly(identity, tmp_path, monkeypatch):
    """A token from memcached may be as old as allowed already; a token of this process is not."""
    folders = [tmp_path / name for name in ("first", "second", "third")]
    for folder in folders:
        folder.mkdir()
    with ExitStack() as stack:
        process, address = stack.enter_context(memcached_server())
        first, second, third = (
            stack.enter_context(served(identity, folder, memcached=address)) for folder in folders
        )
        assert asking(first, GOOD).status_code == 200
        assert asking(second, GOOD).status_code == 200
        monkeypatch.setattr(tokens, "_MEMCACHED_SECONDS", 0)
        assert asking(third, GOOD).status_code == 200
        assert identity.asked == [GOOD], "they have it from memcached"
        process.kill()
        process.wait()
        for http in (first, second):
            assert asking(http, GOOD).status_code == 200
        assert identity.asked == [GOOD], "they know it"
        assert asking(third, GOOD).status_code == 200
        assert identity.asked == [GOOD, GOOD]
