# SPDX-License-Identifier: Apache-2.0
"""A child keeps its limits, ignores signals for its parent, and ends with it."""

import gc
import os
import signal
import socket
import subprocess
import sys
import time
import uuid

import psutil
import pytest

from tests.paths import ROOT
from tests.replica.scripted import (
    answer_in_thread,
    child_processes,
    children,
    descriptors_of,
    scripted,
)
from tests.replica.worlds import question
from tests.servers import eventually
from treeclaim.model.errors import (
    ResourceClassNotFoundError,
    SearchGivenUpError,
    SearchTooLargeError,
    TraitsNotFoundError,
)
from treeclaim.model.request import (
    CandidateRequest,
    ProviderConditions,
    RequestGroup,
)
from treeclaim.replica import Arrival, child
from treeclaim.replica.child import ChildFailedError, pickled, unpickled_error
from treeclaim.replica.question import DEFAULT_MEMORY


@pytest.mark.slow
def test_error_in_a_child_is_raised_with_its_traceback(replica):
    """The failure is not an overload, and the child ends."""

    def faulty(_forest, _budget):
        yield b"{}"
        [].pop()

    with pytest.raises(
        ChildFailedError, match=r"in faulty\n.*\n?.*IndexError: pop from empty list"
    ):
        b"".join(replica.answer(scripted(faulty)))
    assert children() == []


def test_query_over_its_memory_limit_is_refused(replica):
    def greedy(_forest, budget):
        held = []
        # Four times the limit, so that a late refusal fails the test.
        while len(held) < 4 * DEFAULT_MEMORY // 10_000_000:
            budget.check()
            held.append(bytearray(10_000_000))
        yield b"{}"

    with pytest.raises(SearchTooLargeError):
        list(replica.answer(scripted(greedy), Arrival.now(60)))


def test_child_refuses_unknown_names_like_the_worker(replica):
    for conditions, amounts, expected in (
        (ProviderConditions((frozenset({"CUSTOM_NIX"}),)), {"VCPU": 1}, TraitsNotFoundError),
        (ProviderConditions(), {"CUSTOM_NIX": 1}, ResourceClassNotFoundError),
    ):
        group = RequestGroup("", amounts, conditions)
        key = uuid.uuid4().hex
        unknown_question = question(CandidateRequest((group,)), key)
        texts = []
        for is_long in (False, True):
            if is_long:
                replica._slow.note(unknown_question.key)
            with pytest.raises(expected) as refusal:
                list(replica.answer(unknown_question))
            texts.append(str(refusal.value))
        assert texts[0] == texts[1]
        assert unpickled_error(pickled(refusal.value)).__dict__ == refusal.value.__dict__


@pytest.mark.slow
def test_child_inherits_no_connection_and_ignores_stop_signals(replica):
    local, remote = socket.socketpair()
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()

    def sleep(_forest, _budget):
        time.sleep(4)
        yield b"{}"

    thread, outcome = answer_in_thread(replica, scripted(sleep))
    eventually(children, "a child runs")
    (process,) = child_processes()
    eventually(
        lambda: len(descriptors_of(process.pid)) == 6, "the child has closed all other descriptors"
    )
    os.kill(process.pid, signal.SIGTERM)
    remote.close()
    listener.close()
    local.settimeout(20)
    # If the child had inherited them, both would stay open.
    assert local.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, 5)
    local.close()
    thread.join(60)
    assert outcome == [b"{}"]


PARENT = """
import sys, time, pathlib
sys.path.insert(0, {root!r})
from tests.replica.worlds import store_of
from tests.replica.scripted import scripted, loop_without_checks, answer_in_thread
from treeclaim.replica import Replica
replica = Replica(store_of(pathlib.Path({folder!r}), 1))
answer_in_thread(replica, scripted(loop_without_checks))
time.sleep(600)
"""


@pytest.mark.slow
def test_child_dies_with_a_killed_parent(tmp_path):
    root = str(ROOT)
    code = PARENT.format(root=root, folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        result = eventually(lambda: psutil.Process(process.pid).children(), "a child runs")
    finally:
        process.kill()
        process.wait()
    eventually(
        lambda: not any(psutil.pid_exists(child.pid) for child in result), "the child is gone", 30
    )


@pytest.mark.parametrize("is_closed", [True, False])
def test_abandoned_stream_ends_its_child(replica, monkeypatch, is_closed):
    monkeypatch.setattr(child, "WHOLE_ANSWER", 100)

    def long_one(_forest, _budget):
        while True:
            yield b"x" * 1000

    stream = replica.answer(scripted(long_one))
    assert len(next(iter(stream))) >= 1000
    assert len(children()) == 1
    if is_closed:
        stream.close()
    del stream
    gc.collect()
    assert children() == []
    assert replica._children.children.inside_count == 0


@pytest.mark.slow
def test_slow_reading_client_does_not_time_out(replica, monkeypatch):
    """The child waits for the pipe for longer than its time limit."""
    monkeypatch.setattr(child, "WHOLE_ANSWER", 100)

    def long_one(_forest, budget):
        for _ in range(300):
            budget.check()
            yield b"x" * 20_000

    size = 0
    for number, piece in enumerate(replica.answer(scripted(long_one), Arrival.now(1.0))):
        size += len(piece)
        if number == 1:
            time.sleep(2)
    assert size == 300 * 20_000


def test_endless_response_ends_at_its_computing_limit(replica, monkeypatch):
    monkeypatch.setattr(child, "WHOLE_ANSWER", 100)

    def long_one(_forest, budget):
        while True:
            budget.check()
            time.sleep(0.001)
            yield b"x" * 1000

    with pytest.raises(SearchGivenUpError):
        for _ in replica.answer(scripted(long_one), Arrival.now(0.5)):
            pass


def priorities(_forest, _budget):
    """Yield the niceness of the process at the beginning, and after some work."""
    first = os.getpriority(os.PRIO_PROCESS, 0)
    begin = time.process_time()
    while os.getpriority(os.PRIO_PROCESS, 0) == first and time.process_time() < begin + 2:
        pass
    yield b"%d %d" % (first, os.getpriority(os.PRIO_PROCESS, 0))


@pytest.mark.slow
@pytest.mark.parametrize("in_thread", [False, True])
def test_child_priority_drops_to_the_lowest_later(replica, monkeypatch, in_thread):
    monkeypatch.setattr(child, "MILD_SECONDS", 0.05)
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    if in_thread:
        thread, outcome = answer_in_thread(replica, scripted(priorities), seconds=30)
        thread.join(60)
        (priorities_text,) = outcome
    else:
        priorities_text = b"".join(replica.answer(scripted(priorities)))
    assert priorities_text.split() == [b"%d" % min(mine + 5, 19), b"19"]
