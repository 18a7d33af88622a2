# SPDX-License-Identifier: Apache-2.0
"""Look-ups of tokens keep nobody waiting who needs none; the identity service is held by the tests."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from tests.api.middleware.identity_service import GOOD, identity_service
from tests.keystone.service import memcached_server
from tests.server.fronts import everything, running
from tests.servers import NO_CERTIFICATES, eventually
from tests.service import client_of, make_application
from tests.silence import never_answering, not_there
from treeclaim.api.middleware import lookups, tokens

CLIENTS = 64
SEARCH = "/allocation_candidates?resources=VCPU:1"


@pytest.fixture
def identity():
    """An identity service."""
    with identity_service() as service:
        yield service


@contextmanager
def served(identity, folder, threads=4):
    """The service behind it, in the server of `treeclaim serve`; yields an HTTP client."""
    options = identity.options() | {"treeclaim.server_threads": str(threads)}
    application = make_application(folder, **options)
    with running(application, threads) as server, client_at(server) as http:
        yield http, server


def client_at(server):
    """An HTTP client of a server."""
    return httpx.Client(
        base_url="http://{}:{}".format(*server.address),
        headers={"openstack-api-version": "placement 1.39"},
        timeout=60,
        verify=NO_CERTIFICATES,
        limits=httpx.Limits(max_connections=None),
    )


def asking(http, token, path="/resource_providers"):
    """The answer to a read with a token."""
    return http.get(path, headers={"x-auth-token": token})


@pytest.mark.slow
def test_nobody_who_needs_no_look_up_waits_for_those_of_others(identity, tmp_path):
    with served(identity, tmp_path) as (http, _), ThreadPoolExecutor(CLIENTS) as clients:
        assert asking(http, GOOD).status_code == 200
        identity.hold()
        strangers = [clients.submit(asking, http, f"bad-{number}") for number in range(CLIENTS)]
        eventually(lambda: len(identity.asked) > 1, "tokens are looked up")
        # The identity service answers nobody before these are answered.
        assert http.get("/").status_code == 200
        assert asking(http, GOOD, SEARCH).status_code == 200
        assert http.get("/resource_providers").status_code == 401
        asked = identity.asked[1:]
        assert len(asked) <= 2, "half of the threads look tokens up"
        identity.release()
        assert {one.result().status_code for one in strangers} == {401}
        assert len(identity.asked) == 1 + CLIENTS


@pytest.mark.slow
def test_all_who_bring_the_same_token_wait_for_one_look_up(identity, tmp_path):
    with served(identity, tmp_path) as (http, server), ThreadPoolExecutor(CLIENTS) as clients:
        identity.hold()
        callers = [clients.submit(asking, http, GOOD) for _ in range(CLIENTS)]
        eventually(lambda: len(server.front.table) == CLIENTS, "all have come")
        eventually(lambda: identity.asked, "one of them is looked up")
        identity.release()
        assert {one.result().status_code for one in callers} == {200}
    assert identity.asked == [GOOD]


@pytest.mark.slow
def test_who_waits_too_long_is_told_when_to_come_again(identity, tmp_path, monkeypatch):
    monkeypatch.setattr(lookups, "LONGEST_WAIT", 0.3)
    with served(identity, tmp_path) as (http, _):
        identity.hold()
        for _ in range(8):
            refused = asking(http, GOOD)
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
            assert refused.json()["errors"][0]["status"] == 503
            assert refused.headers["x-openstack-request-id"].startswith("req-")
        assert identity.asked == [GOOD], "the same token is asked for once"
        identity.release()
        assert asking(http, GOOD).status_code == 200


def test_more_unknown_tokens_than_may_wait_are_refused_at_once(identity, tmp_path):
    options = identity.options() | {"treeclaim.server_threads": "4"}
    with ExitStack() as stack:
        application = make_application(
            tmp_path, **(options | {"treeclaim.max_waiting_requests": "8"})
        )
        server = stack.enter_context(running(application, 4))
        http = stack.enter_context(client_at(server))
        clients = stack.enter_context(ThreadPoolExecutor(CLIENTS))
        identity.hold()
        callers = [clients.submit(asking, http, f"{GOOD}-{number}") for number in range(32)]
        # Two are looked up, eight wait, and the others have their answer before any of these.
        eventually(lambda: sum(one.done() for one in callers) == 22, "the others are refused")
        refused = [one.result() for one in callers if one.done()]
        assert {answer.status_code for answer in refused} == {503}
        assert {answer.headers["retry-after"] for answer in refused} == {"1"}
        identity.release()
        assert sorted(one.result().status_code for one in callers) == [200] * 10 + [503] * 22


def test_nobody_is_looked_up_who_has_hung_up_meanwhile(identity, tmp_path):
    with served(identity, tmp_path) as (http, server):
        identity.hold()
        head = "GET /resource_providers HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: {}\r\n\r\n"
        gone = [server.connect() for _ in range(CLIENTS)]
        for number, client in enumerate(gone):
            client.sendall(head.format(f"bad-{number}").encode())
        eventually(lambda: len(identity.asked) == 2, "two are looked up")
        eventually(lambda: len(server.front.table) == CLIENTS, "all have come")
        # An answer that needs no look-up: whoever came before has been read.
        assert http.get("/").status_code == 200
        for client in gone:
            client.close()
        eventually(lambda: len(server.front.table) == 1, "all but the last have gone")
        identity.release()
        assert asking(http, GOOD).status_code == 200
    assert len(identity.asked) == 3


def test_who_sends_no_more_and_waits_is_looked_up(identity, tmp_path):
    with served(identity, tmp_path) as (_, server), ExitStack() as stack:
        identity.hold()
        head = "GET /resource_providers HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: {}\r\n\r\n"
        waiting = [stack.enter_context(server.connect()) for _ in range(8)]
        for number, client in enumerate(waiting):
            client.sendall(head.format(f"{GOOD}-{number}").encode())
            client.shutdown(socket.SHUT_WR)
        eventually(
            lambda: sum(one._answering.has_ended for one in server.front.table) == len(waiting),
            "all have said that they send no more",
        )
        identity.release()
        for client in waiting:
            assert b"HTTP/1.1 200 OK" in everything(client)
    assert len(identity.asked) == len(waiting)


def test_a_server_that_only_has_threads_keeps_some_of_them_too(identity, tmp_path):
    """Under another WSGI server a request waits in its thread, as there is nowhere else."""
    options = identity.options() | {"treeclaim.server_threads": "4"}
    application = make_application(tmp_path, **options)
    with client_of(application) as http, ThreadPoolExecutor(4) as threads:
        del http.headers["x-auth-token"]
        assert asking(http, GOOD).status_code == 200
        identity.hold()
        waiting = [threads.submit(asking, http, f"bad-{number}") for number in range(2)]
        eventually(lambda: len(identity.asked) == 3, "both are looked up")
        refused = asking(http, "bad-3")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert http.get("/").status_code == 200
        assert asking(http, GOOD, SEARCH).status_code == 200
        identity.release()
        assert [one.result().status_code for one in waiting] == [401, 401]


@pytest.mark.slow
def test_a_token_is_known_to_every_thread_that_asks_for_it(identity, tmp_path):
    """However many ask at the same moment, none of them needs a look-up of its own."""
    with served(identity, tmp_path, threads=8) as (http, _), ThreadPoolExecutor(16) as clients:
        assert asking(http, GOOD).status_code == 200
        begin = threading.Barrier(16)

        def ask():
            begin.wait()
            return [asking(http, GOOD, "/traits").status_code for _ in range(10)]

        answers = [one.result() for one in [clients.submit(ask) for _ in range(16)]]
    assert {status for each in answers for status in each} == {200}
    assert identity.asked == [GOOD]


SILENT = {"accepts and never answers": never_answering, "drops what is sent": not_there}


@contextmanager
def served_with_memcached(identity, folder, address):
    """The same, with a memcached in which tokens are to be kept."""
    options = identity.options() | {"keystone_authtoken.memcached_servers": address}
    application = make_application(folder, **options, **{"treeclaim.server_threads": "4"})
    with running(application, 4) as server, client_at(server) as http:
        yield http


# The library leaves a socket that could not be connected to Python.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", SILENT)
def test_who_is_known_does_not_wait_for_a_memcached_that_is_silent(identity, tmp_path, kind):
    with ExitStack() as stack:
        silent = stack.enter_context(SILENT[kind]())
        address = silent if isinstance(silent, str) else silent[0]
        http = stack.enter_context(served_with_memcached(identity, tmp_path, address))
        clients = stack.enter_context(ThreadPoolExecutor(CLIENTS))
        assert asking(http, GOOD).status_code == 200
        # As many as there are threads, and more, are to be looked up, and nobody answers.
        identity.hold()
        others = [clients.submit(asking, http, f"{GOOD}-{number}") for number in range(16)]
        eventually(lambda: len(identity.asked) > 1, "they are looked up")
        assert asking(http, GOOD, SEARCH).status_code == 200
        identity.release()
        assert {one.result().status_code for one in others} == {200}
    assert sorted(identity.asked) == sorted([GOOD, *(f"{GOOD}-{n}" for n in range(16))])


@pytest.mark.slow
def test_a_silent_memcached_is_told_of_and_left_alone(identity, tmp_path, caplog):
    with (
        never_answering() as (address, taken),
        served_with_memcached(identity, tmp_path, address) as http,
    ):
        assert asking(http, GOOD).status_code == 200
        assert "memcached was waited for" in caplog.text
        assert len(taken) == 1
        for number in range(8):
            assert asking(http, f"{GOOD}-{number}").status_code == 200
        assert len(taken) == 1


@pytest.mark.slow
def test_a_token_that_another_process_has_looked_up_is_believed_for_a_moment(
    identity, tmp_path, monkeypatch
):
    """What memcached says is as old as it may be already; what this process was told is not."""
    folders = [tmp_path / name for name in ("first", "second", "third")]
    for folder in folders:
        folder.mkdir()
    with ExitStack() as stack:
        process, address = stack.enter_context(memcached_server())
        first, second, third = (
            stack.enter_context(served_with_memcached(identity, folder, address))
            for folder in folders
        )
        assert asking(first, GOOD).status_code == 200
        assert asking(second, GOOD).status_code == 200
        monkeypatch.setattr(tokens, "_HEARSAY_SECONDS", 0)
        assert asking(third, GOOD).status_code == 200
        assert identity.asked == [GOOD], "they have it from memcached"
        process.kill()
        process.wait()
        for http in (first, second):
            assert asking(http, GOOD).status_code == 200
        assert identity.asked == [GOOD], "they know it"
        assert asking(third, GOOD).status_code == 200
        assert identity.asked == [GOOD, GOOD]
