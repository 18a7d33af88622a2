# SPDX-License-Identifier: Apache-2.0
"""Questions that take long are answered beside the others, within bounds, and leave nothing."""

import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import psutil
import pytest

from tests.replica.worlds import claim, plant, question, store_of
from tests.servers import eventually
from treeclaim.forest.deadline import Deadline
from treeclaim.model.errors import (
    ClientGoneError,
    OverloadedError,
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
from treeclaim.replica import Asked, Replica, child, parent, slow
from treeclaim.replica.wire import packed, unpacked


@pytest.fixture
def store(tmp_path):
    """A store with twenty hosts."""
    made = store_of(tmp_path, 20)
    yield made
    made.close()


@pytest.fixture
def replica(store):
    """A replica that is up to date."""
    made = Replica(store)
    with made.current():
        pass
    return made


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No test leaves a child, a zombie or a pipe."""
    gc.collect()
    before = pipes()
    yield
    gc.collect()
    assert children() == []
    assert pipes() <= before


def children():
    """The children of this process that the tests did not start themselves."""
    return [one.pid for one in psutil.Process().children()]


def pipes():
    """The pipes that this process has open."""
    found = set()
    for one in descriptors_of(os.getpid()):
        with contextlib.suppress(OSError):
            found.add(str(one.readlink()))
    return {one for one in found if one.startswith("pipe:")}


def descriptors_of(process):
    """The open descriptors of a process, as links."""
    return list(Path(f"/proc/{process}/fd").iterdir())


class Scripted:
    """A question of which the tests say what it does; it runs in a child unless told otherwise."""

    is_repeatable = False
    candidates = 0

    def __init__(self, script, key=None, *, is_hard=True):
        self.script = script
        self.key = key
        self.is_hard = is_hard

    def begin(self, forest, deadline):
        self.forest, self.deadline = forest, deadline
        return self

    def pieces(self):
        yield from self.script(self.forest, self.deadline)


def endless(_forest, deadline):
    """Compute, look at the clock, and never find anything."""
    while True:
        deadline.check()
    yield b""


def deaf(_forest, _deadline):
    """Compute without looking at the clock."""
    while True:
        pass
    yield b""


def asked_in_thread(replica, asked, **how):
    """Ask in a thread; returns it and the list to which the outcome comes."""
    outcome = []

    def work():
        try:
            outcome.append(b"".join(replica.answer(asked, Asked.now(**how))))
        except Exception as error:  # noqa: BLE001 - it is looked at by the test
            outcome.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread, outcome


def test_a_child_answers_as_the_worker_itself(replica, monkeypatch):
    expected = b"".join(replica.answer(question(key="a")))
    replica._long.note(question(key="b").key)
    here = os.getpid()
    seen = []
    monkeypatch.setattr(parent, "fork", lambda *one: seen.append(os.getpid()) or child.fork(*one))
    assert b"".join(replica.answer(question(key="b"))) == expected
    assert seen == [here]


def test_others_are_answered_while_children_compute(replica, store):
    hard = [asked_in_thread(replica, Scripted(endless), seconds=20) for _ in range(4)]
    eventually(lambda: len(children()) >= 2, "children run")
    for number in range(30):
        begin = time.monotonic()
        body = b"".join(replica.answer(question(key=str(number))))
        with replica.current() as forest:
            assert len(forest) == 20
        assert time.monotonic() - begin < 5
        assert len(json.loads(body)["allocation_requests"]) == 20
    assert any(not outcome for _, outcome in hard)
    for one in psutil.Process().children():
        one.kill()
    # Those that had no turn yet have it now.
    while any(thread.is_alive() for thread, _ in hard):
        for one in psutil.Process().children():
            one.kill()
        hard[0][0].join(0.05)
        for thread, _ in hard:
            thread.join(0.05)
    assert all(isinstance(outcome[0], OverloadedError) for _, outcome in hard)


def test_a_child_reflects_what_was_committed_before_the_question(replica, store):
    """The Forest of the replica is of an earlier moment when the question comes."""
    plant(store, 100)
    claim(store, 1)
    replica._long.note(question(key="late").key)
    found = json.loads(b"".join(replica.answer(question(key="late"))))
    assert len(found["allocation_requests"]) == 20
    assert str(uuid.UUID(int=100)) in found["provider_summaries"]
    assert str(uuid.UUID(int=1)) not in found["provider_summaries"]


def test_an_answer_of_a_child_is_kept_until_something_changes(replica, store):
    key = question(key="kept").key
    replica._long.note(key)
    first = b"".join(replica.answer(question(key="kept")))
    asked = Scripted(deaf, key)
    asked.is_repeatable = True
    assert b"".join(replica.answer(asked)) == first


@pytest.mark.parametrize(
    "script", [endless, deaf], ids=["that looks at the clock", "that does not"]
)
def test_a_question_is_given_up_when_its_time_is_over(replica, script):
    begin = time.monotonic()
    with pytest.raises(SearchGivenUpError) as refusal:
        list(replica.answer(Scripted(script), Asked.now(0.5)))
    assert 0.4 < time.monotonic() - begin < 10
    assert refusal.value.seconds == 0.5


def test_the_time_in_a_queue_counts(replica):
    """Others have all children; the one that waits is refused when its time is over."""
    hard = [asked_in_thread(replica, Scripted(deaf), seconds=4) for _ in range(4)]
    eventually(lambda: replica._slow._brief.inside + replica._slow._long.inside >= 2, "they run")
    begin = time.monotonic()
    with pytest.raises((OverloadedError, SearchGivenUpError)):
        list(replica.answer(Scripted(endless), Asked.now(0.3)))
    assert time.monotonic() - begin < 5
    for thread, outcome in hard:
        thread.join(60)
        assert isinstance(outcome[0], SearchGivenUpError | OverloadedError)


@pytest.mark.parametrize("part", ["_brief", "_long"])
def test_too_many_long_questions_are_refused_at_once(store, part):
    replica = Replica(store, slow_places=3)
    asked = Scripted(deaf, b"very long")
    if part == "_long":
        replica._long.note(asked.key, very=True)
    gate = getattr(replica._slow, part)
    waiting = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: gate.acquire(60))
        thread.start()
        waiting.append(thread)
    eventually(lambda: gate.inside + gate.waiting == 3, "all places are taken")
    begin = time.monotonic()
    with pytest.raises(OverloadedError):
        list(replica.answer(asked, Asked.now(30)))
    assert time.monotonic() - begin < 10
    gate.release()
    for one in waiting:
        one.join(60)


def test_a_question_whose_client_has_gone_is_dropped(replica):
    gone = threading.Event()
    thread, outcome = asked_in_thread(replica, Scripted(deaf), seconds=60, is_gone=gone.is_set)
    eventually(children, "a child runs")
    gone.set()
    thread.join(20)
    assert isinstance(outcome[0], ClientGoneError)


def test_a_question_whose_client_has_gone_does_not_wait_for_its_turn(replica):
    gone = threading.Event()
    with replica.current():
        thread, outcome = asked_in_thread(replica, question(key="x"), is_gone=gone.is_set)
        eventually(lambda: replica._turn.waiting, "it waits")
        gone.set()
        thread.join(20)
    assert isinstance(outcome[0], ClientGoneError)


def test_nobody_waits_for_the_forest_without_end(replica, monkeypatch):
    monkeypatch.setattr("treeclaim.replica.replica.LONGEST_WAIT", 0.2)
    with replica.current():
        found = []

        def ask():
            try:
                with replica.current():
                    pass
            except OverloadedError as error:
                found.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(20)
        with pytest.raises(OverloadedError):
            list(replica.answer(question(key="y"), Asked.now(0.2)))
    assert len(found) == 1


def test_a_question_that_takes_too_much_memory_is_refused(replica):
    def greedy(_forest, deadline):
        held = []
        while True:
            deadline.check()
            held.append(bytearray(10_000_000))
        yield b""

    with pytest.raises(SearchTooLargeError):
        list(replica.answer(Scripted(greedy), Asked.now(60)))


def test_unknown_names_are_refused_alike_by_a_child(replica):
    for conditions, amounts, expected in (
        ({"required": (frozenset({"CUSTOM_NIX"}),)}, {"VCPU": 1}, TraitsNotFoundError),
        ({}, {"CUSTOM_NIX": 1}, ResourceClassNotFoundError),
    ):
        group = RequestGroup("", amounts, ProviderConditions(**conditions))
        key = uuid.uuid4().hex
        asked = question(CandidateRequest((group,)), key)
        texts = []
        for is_long in (False, True):
            if is_long:
                replica._long.note(asked.key)
            with pytest.raises(expected) as refusal:
                list(replica.answer(asked))
            texts.append(str(refusal.value))
        assert texts[0] == texts[1]
        assert unpacked(packed(refusal.value)).__dict__ == refusal.value.__dict__


def test_a_child_keeps_no_connection_open_and_hears_no_signal_to_stop(replica):
    ours, theirs = socket.socketpair()
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()

    def slow_one(_forest, _deadline):
        time.sleep(4)
        yield b"{}"

    thread, outcome = asked_in_thread(replica, Scripted(slow_one))
    eventually(children, "a child runs")
    (process,) = psutil.Process().children()
    eventually(lambda: len(descriptors_of(process.pid)) == 5, "it has closed the rest")
    os.kill(process.pid, signal.SIGTERM)
    theirs.close()
    listener.close()
    ours.settimeout(20)
    # A child that had them open would keep both alive.
    assert ours.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, 5)
    ours.close()
    thread.join(60)
    assert outcome == [b"{}"]


PARENT = """
import sys, time, pathlib
sys.path.insert(0, {root!r})
from tests.replica.worlds import store_of
from tests.replica.test_lanes import Scripted, deaf, asked_in_thread
from treeclaim.replica import Replica
replica = Replica(store_of(pathlib.Path({folder!r}), 1))
asked_in_thread(replica, Scripted(deaf))
time.sleep(600)
"""


def test_a_child_dies_with_its_parent_whatever_kills_that(tmp_path):
    root = str(Path(__file__).parents[2])
    code = PARENT.format(root=root, folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        found = eventually(lambda: psutil.Process(process.pid).children(), "a child runs")
    finally:
        process.kill()
        process.wait()
    eventually(lambda: not any(psutil.pid_exists(one.pid) for one in found), "it is gone", 30)


def test_a_stream_that_is_closed_ends_its_child(replica, monkeypatch):
    monkeypatch.setattr(child, "WHOLE_ANSWER", 100)

    def long_one(_forest, _deadline):
        while True:
            yield b"x" * 1000

    stream = replica.answer(Scripted(long_one))
    assert len(next(iter(stream))) >= 1000
    assert len(children()) == 1
    stream.close()
    assert children() == []
    assert replica._slow._brief.inside + replica._slow._long.inside == 0


def test_a_stream_that_is_forgotten_ends_its_child(replica, monkeypatch):
    monkeypatch.setattr(child, "WHOLE_ANSWER", 100)

    def long_one(_forest, _deadline):
        while True:
            yield b"x" * 1000

    stream = replica.answer(Scripted(long_one))
    next(iter(stream))
    del stream
    gc.collect()
    assert children() == []


def test_a_client_that_reads_slowly_is_not_given_up(replica, monkeypatch):
    """The child waits at the pipe for longer than it may compute."""
    monkeypatch.setattr(child, "WHOLE_ANSWER", 100)

    def long_one(_forest, deadline):
        for _ in range(300):
            deadline.check()
            yield b"x" * 20_000

    size = 0
    for number, piece in enumerate(replica.answer(Scripted(long_one), Asked.now(1.0))):
        size += len(piece)
        if number == 1:
            time.sleep(2)
    assert size == 300 * 20_000


def test_an_answer_without_end_ends_when_its_computing_time_is_over(replica, monkeypatch):
    monkeypatch.setattr(child, "WHOLE_ANSWER", 100)

    def long_one(_forest, deadline):
        while True:
            deadline.check()
            time.sleep(0.001)
            yield b"x" * 1000

    begin = time.monotonic()
    with pytest.raises(SearchGivenUpError):
        for _ in replica.answer(Scripted(long_one), Asked.now(0.5)):
            pass
    assert time.monotonic() - begin < 20


def test_servers_that_reap_all_children_do_no_harm(replica):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        replica._long.note(question(key="r").key)
        assert b"".join(replica.answer(question(key="r")))
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_where_no_child_can_be_made_others_have_turns_in_between(replica, monkeypatch):
    def refuse(*_):
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(child.os, "fork", refuse)
    thread, outcome = asked_in_thread(replica, Scripted(endless), seconds=3)
    eventually(lambda: replica._turn.inside, "it has the turn")
    for number in range(5):
        begin = time.monotonic()
        assert b"".join(replica.answer(question(key=str(number))))
        assert time.monotonic() - begin < 2
    assert not outcome
    thread.join(60)
    assert isinstance(outcome[0], SearchGivenUpError)


def test_what_was_abandoned_leaves_the_forest_as_it_was(replica, monkeypatch):
    """Each look at the clock in turn is the one at which a search is abandoned."""
    request = CandidateRequest((RequestGroup("_A", {"VCPU": 1}), RequestGroup("_B", {"VCPU": 1})))
    expected = b"".join(replica.answer(question(request, key="expected")))

    class AbandonedError(Exception):
        pass

    for at in range(40):
        looks = iter(range(at))

        def check(looks=looks):
            if next(looks, None) is None:
                raise AbandonedError

        with replica.current() as forest:
            asked = question(request, key="other")
            try:
                for _ in asked.begin(forest, Deadline(None, check)).pieces():
                    pass
            except AbandonedError:
                pass
        assert b"".join(replica.answer(question(request, key=f"after {at}"))) == expected


def test_a_question_of_medium_length_is_answered_while_others_take_all_their_time(replica):
    """Two very long ones have the long part; the brief one is free again after a second."""
    very_long = [asked_in_thread(replica, Scripted(deaf), seconds=15) for _ in range(2)]
    eventually(lambda: replica._slow._long.inside == slow._CHILDREN, "they are in the long part")

    def medium(_forest, _deadline):
        time.sleep(0.2)
        yield b"{}"

    begin = time.monotonic()
    assert list(replica.answer(Scripted(medium), Asked.now(30))) == [b"{}"]
    assert time.monotonic() - begin < 10
    assert not any(outcome for _, outcome in very_long)
    for one in psutil.Process().children():
        one.kill()
    for thread, _ in very_long:
        thread.join(30)
