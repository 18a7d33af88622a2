# SPDX-License-Identifier: Apache-2.0
"""Long questions run beside short ones, within limits, and leave no child."""

import json
import os
import signal
import socket
import struct
import threading
import time
import uuid
from contextlib import suppress

import psutil
import pytest

from tests.replica.scripted import (
    answer_in_thread,
    child_processes,
    children,
    loop_with_checks,
    loop_without_checks,
    scripted,
)
from tests.replica.worlds import claim, plant, question
from tests.server.fronts import HELLO, everything, running
from tests.servers import eventually
from treeclaim.forest.bounds.budget import Budget
from treeclaim.gate import Gate
from treeclaim.model.errors import ClientGoneError, OverloadedError, SearchGivenUpError
from treeclaim.model.request import (
    CandidateRequest,
    RequestGroup,
)
from treeclaim.replica import Arrival
from treeclaim.replica.turn import PATIENCE, OutOfPatienceError, make_attempt_check


def test_child_response_equals_the_worker_response(replica, monkeypatch):
    expected = b"".join(replica.answer(question(key="a")))
    replica._slow.note(question(key="b").key)
    fork, forked = os.fork, []

    def record_fork():
        forked.append(True)
        return fork()

    monkeypatch.setattr(os, "fork", record_fork)
    assert b"".join(replica.answer(question(key="b"))) == expected
    assert len(forked) == 1


def kill_children():
    """Kill all children; ignore those that have just ended."""
    for child_process in child_processes():
        with suppress(psutil.NoSuchProcess):
            child_process.kill()


@pytest.mark.slow
def test_short_queries_are_answered_while_children_compute(replica, store):
    hard = [answer_in_thread(replica, scripted(loop_with_checks), seconds=20) for _ in range(4)]
    eventually(lambda: len(children()) >= 2, "children run")
    for number in range(30):
        body = b"".join(replica.answer(question(key=str(number))))
        with replica.borrow_forest() as forest:
            assert len(forest) == 20
        assert len(json.loads(body)["allocation_requests"]) == 20
    assert any(not outcome for _, outcome in hard)
    kill_children()
    # Children of waiting questions start now.
    while any(thread.is_alive() for thread, _ in hard):
        kill_children()
        hard[0][0].join(0.05)
        for thread, _ in hard:
            thread.join(0.05)
    assert all(isinstance(outcome[0], OverloadedError) for _, outcome in hard)


@pytest.mark.slow
def test_slow_query_is_handed_from_worker_to_child(replica):
    slow_question = scripted(loop_with_checks, b"unexpected", is_hard=False)
    thread, outcome = answer_in_thread(replica, slow_question, seconds=5)
    eventually(children, "a child runs")
    assert b"".join(replica.answer(question(key="short")))
    thread.join(60)
    assert isinstance(outcome[0], SearchGivenUpError)


def test_question_long_in_a_single_attempt_is_tried_in_the_worker_again(replica):
    """The first search after many claims is long, and the next ones are short."""
    attempts = []

    def long_at_first(_forest, budget):
        attempts.append(os.getpid())
        while attempts == [worker]:
            budget.check()
        yield str(os.getpid()).encode()

    worker = os.getpid()
    query = scripted(long_at_first, b"long at first", is_hard=False)
    assert b"".join(replica.answer(query)) != str(worker).encode()
    assert b"".join(replica.answer(query)) == str(worker).encode()


def test_child_sees_commits_before_the_query(replica, store):
    """The Forest is out of date when the question arrives."""
    plant(store, 100)
    claim(store, 1)
    replica._slow.note(question(key="late").key)
    document = json.loads(b"".join(replica.answer(question(key="late"))))
    assert len(document["allocation_requests"]) == 20
    assert str(uuid.UUID(int=100)) in document["provider_summaries"]
    assert str(uuid.UUID(int=1)) not in document["provider_summaries"]


def test_child_response_is_cached_until_a_change(replica, store):
    key = question(key="kept").key
    replica._slow.note(key)
    first = b"".join(replica.answer(question(key="kept")))
    repeatable = scripted(loop_without_checks, key, is_repeatable=True)
    assert b"".join(replica.answer(repeatable)) == first


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", [loop_with_checks, loop_without_checks], ids=["with checks", "without checks"]
)
@pytest.mark.parametrize("seconds", [0.5, 2.0], ids=["within a second", "in a long place"])
def test_query_times_out(replica, script, seconds):
    begin = time.monotonic()
    with pytest.raises(SearchGivenUpError) as refusal:
        list(replica.answer(scripted(script), Arrival.now(seconds)))
    assert seconds - 0.1 < time.monotonic() - begin
    assert refusal.value.seconds == seconds


@pytest.mark.slow
def test_queue_time_counts_toward_the_timeout(replica):
    """A question that waits for a child is refused at its deadline."""
    hard = [answer_in_thread(replica, scripted(loop_without_checks), seconds=4) for _ in range(4)]
    eventually(lambda: replica._children.children.inside_count == 4, "all children run")
    with pytest.raises((OverloadedError, SearchGivenUpError)):
        list(replica.answer(scripted(loop_with_checks), Arrival.now(0.3)))
    assert not all(outcome for _, outcome in hard)
    for thread, outcome in hard:
        thread.join(60)
        assert isinstance(outcome[0], SearchGivenUpError | OverloadedError)


def test_third_very_slow_query_is_refused_after_a_second(replica):
    very_long = [
        answer_in_thread(replica, scripted(loop_without_checks), seconds=15) for _ in range(2)
    ]
    eventually(lambda: replica._children.long_gate.inside_count == 2, "both have a long place")
    with pytest.raises(OverloadedError):
        list(replica.answer(scripted(loop_without_checks), Arrival.now(15)))
    assert len(children()) == 2
    assert not any(outcome for _, outcome in very_long)
    kill_children()
    for thread, _ in very_long:
        thread.join(30)


def make_application(replica, script):
    """Return an application that answers with a child."""

    def application(environment, start_response):
        arrival = Arrival.now(60, environment["treeclaim.client_gone"])
        try:
            body = b"".join(replica.answer(scripted(script), arrival))
        except ClientGoneError:
            body = b""
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]

    return application


def test_child_continues_for_a_half_closed_client(replica, tmp_path):
    def wait_for_file(_forest, budget):
        while not (tmp_path / "now").exists():
            budget.check()
        yield b"found"

    with running(make_application(replica, wait_for_file)) as server, server.connect() as client:
        client.sendall(HELLO)
        client.shutdown(socket.SHUT_WR)
        eventually(children, "a child runs")
        (connection,) = server.front.table
        eventually(lambda: connection.has_ended, "the server has read the end")
        (tmp_path / "now").touch()
        assert everything(client).endswith(b"\r\n\r\nfound")


@pytest.mark.parametrize("ahead", [0, 100])
@pytest.mark.parametrize("resets", [False, True])
def test_child_ends_when_its_client_disconnects(replica, ahead, resets):
    with running(make_application(replica, loop_without_checks)) as server:
        client = server.connect()
        client.sendall(HELLO + HELLO * ahead)
        eventually(children, "a child runs")
        if resets:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        eventually(lambda: children() == [], "the child has ended")
        eventually(lambda: len(server.front.table) == 0, "the connection is removed")


def test_query_of_a_disconnected_client_leaves_the_queue(replica):
    departure = threading.Event()
    with replica.borrow_forest():
        thread, outcome = answer_in_thread(replica, question(key="x"), is_gone=departure.is_set)
        eventually(lambda: replica.turn.waiting_count, "the query waits")
        departure.set()
        thread.join(20)
    assert isinstance(outcome[0], ClientGoneError)


def test_wait_for_the_forest_times_out(replica, monkeypatch):
    monkeypatch.setattr("treeclaim.replica.replica.LONGEST_WAIT", 0.2)
    with replica.borrow_forest():
        errors = []

        def read_forest():
            try:
                with replica.borrow_forest():
                    pass
            except OverloadedError as error:
                errors.append(error)

        thread = threading.Thread(target=read_forest)
        thread.start()
        thread.join(20)
        with pytest.raises(OverloadedError):
            list(replica.answer(question(key="y"), Arrival.now(0.2)))
    assert len(errors) == 1


def test_ignored_sigchld_does_not_break_children(replica):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        replica._slow.note(question(key="r").key)
        assert b"".join(replica.answer(question(key="r")))
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_query_is_refused_when_no_child_can_be_forked(replica, monkeypatch):
    def refuse(*_):
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    with pytest.raises(OverloadedError):
        list(replica.answer(scripted(loop_with_checks), Arrival.now(3)))
    assert b"".join(replica.answer(question(key="short")))


def test_processor_wait_does_not_use_up_patience():
    """A restart in a child would need even more processor time."""
    turn = Gate(1)
    assert turn.acquire(0)
    waiting_thread = threading.Thread(target=turn.acquire, args=(60,))
    waiting_thread.start()
    eventually(lambda: turn.waiting_count, "the thread waits")
    check = make_attempt_check(turn, Arrival.now())
    time.sleep(2 * PATIENCE)
    check()
    end = time.thread_time() + 2 * PATIENCE
    with pytest.raises(OutOfPatienceError):
        while time.thread_time() < end:
            check()
    turn.release()
    waiting_thread.join(60)


def test_abandoned_search_leaves_the_forest_unchanged(replica, monkeypatch):
    """A search may be abandoned at any check of its budget."""
    request = CandidateRequest((RequestGroup("_A", {"VCPU": 1}), RequestGroup("_B", {"VCPU": 1})))
    expected = b"".join(replica.answer(question(request, key="expected")))

    class AbandonedError(Exception):
        pass

    for check_count in range(40):
        checks = iter(range(check_count))

        def check(checks=checks):
            if next(checks, None) is None:
                raise AbandonedError

        with replica.borrow_forest() as forest:
            abandoned = question(request, key="other")
            try:
                for _ in abandoned.work(forest, iter(()), Budget(interrupted=check)):
                    pass
            except AbandonedError:
                pass
        assert b"".join(replica.answer(question(request, key=f"after {check_count}"))) == expected
