# SPDX-License-Identifier: Apache-2.0
"""Parts of the processes of the service: the connection, listeners, replacement and retries."""

import json
import os
import signal
import socket
import stat
import threading
import time

import psutil
import pytest

from tests.servers import eventually
from treeclaim.admin import Census
from treeclaim.server.processes import children, control, liveness
from treeclaim.server.processes.children import (
    YOUNG_SECONDS,
    Backoff,
    CannotForkError,
    ProcessPlace,
    ServiceProcess,
    describe_end,
    require_no_threads,
)
from treeclaim.server.processes.control import Control, make_controls, report_work
from treeclaim.server.processes.listening import ListenError, listen_at, open_listener
from treeclaim.server.processes.liveness import LivenessTable
from treeclaim.server.settings import ServerSettings


@pytest.fixture
def controls():
    """Both ends of a connection between the master and a generation."""
    ours, socket_of_theirs = make_controls()
    theirs = Control(socket_of_theirs)
    yield ours, theirs
    ours.close()
    theirs.close()


def test_messages_arrive_in_order_and_both_ways(controls):
    ours, theirs = controls
    assert ours.receive() is None
    theirs.send("checked", admin=["127.0.0.1", 8779])
    theirs.send("ready", where="http://here")
    ours.send("reload_refused", why="a typo")
    assert ours.receive() == ({"kind": "checked", "admin": ["127.0.0.1", 8779]}, [])
    assert ours.receive() == ({"kind": "ready", "where": "http://here"}, [])
    assert ours.receive() is None
    assert theirs.receive() == ({"kind": "reload_refused", "why": "a typo"}, [])


def test_listening_sockets_are_handed_over_and_no_child_inherits_them(controls):
    ours, theirs = controls
    with listen_at("127.0.0.1", 0) as listener:
        address = listener.getsockname()
        ours.send("serve", [listener], problems=[])
    message, (received,) = theirs.receive()
    with received, socket.create_connection(address), received.accept()[0] as accepted:
        assert message == {"kind": "serve", "problems": []}
        assert accepted.getsockname() == address
        assert not received.get_inheritable()


@pytest.mark.parametrize("data", [b"not JSON", b"[]", b'{"why": "no kind"}'])
def test_invalid_message_is_refused(data):
    ours, theirs = make_controls()
    with theirs:
        theirs.send(data)
        with pytest.raises(ValueError):
            ours.receive()
    ours.close()


def test_closed_end_blocks_neither_sending_nor_receiving(controls):
    ours, theirs = controls
    theirs.close()
    ours.send("serve", problems=[])
    assert ours.receive() is None


def test_loader_reports_its_work_until_its_master_ends(monkeypatch):
    monkeypatch.setattr(control, "WORKING_SECONDS", 0.01)
    ours, socket_of_theirs = make_controls()
    lifeline, of_the_master = os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(lifeline, 0)
        os.close(of_the_master)
        with report_work(Control(socket_of_theirs)):
            signal.pause()
    socket_of_theirs.close()
    os.close(lifeline)
    for _ in range(3):
        assert eventually(ours.receive) == ({"kind": "working"}, [])
    os.close(of_the_master)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    ours.close()


def test_unix_socket_has_its_mode(tmp_path):
    path = tmp_path / "socket"
    with open_listener(ServerSettings(unix_socket=str(path), unix_socket_mode=0o660)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


def test_error_names_the_occupied_address():
    with listen_at("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ListenError, match=rf"127\.0\.0\.1:{port}: Address already in use"):
            listen_at("127.0.0.1", port)


def test_first_retry_is_immediate_and_pauses_double_up_to_five_seconds():
    backoff, pauses = Backoff(), []
    for _ in range(8):
        pauses.append(backoff.pause)
        backoff.postpone()
        assert backoff.is_due == (len(pauses) == 1)
    assert pauses == [0, 0.25, 0.5, 1, 2, 4, 5, 5]
    backoff.reset()
    backoff.postpone()
    assert backoff.is_due
    backoff.disable()
    assert not backoff.is_due


def process_of(age, pid=None):
    """This process, or another, as one that began to answer so many seconds ago."""
    place = ProcessPlace("Worker 1", "worker", work=print)
    started_at = time.monotonic() - age
    return ServiceProcess(pid or os.getpid(), 1, place, started_at, 0.0, is_ready=True)


def test_young_process_is_neither_too_old_nor_too_large():
    young, older = process_of(YOUNG_SECONDS - 5), process_of(YOUNG_SECONDS + 5)
    assert young.find_excess(lifetime=1, memory=1) is None
    assert older.find_excess(lifetime=None, memory=None) is None
    assert older.find_excess(lifetime=YOUNG_SECONDS + 60, memory=None) is None
    assert older.find_excess(lifetime=YOUNG_SECONDS, memory=None) == "old"
    mebibytes = psutil.Process().memory_info().rss / 2**20
    assert older.find_excess(lifetime=None, memory=mebibytes / 2) == "large"
    assert older.find_excess(lifetime=None, memory=mebibytes * 2) is None
    older.is_ready = False
    assert older.find_excess(lifetime=1, memory=1) is None


def test_ended_process_has_no_memory_and_ignores_signals():
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    ended = process_of(60, pid)
    ended.send(signal.SIGKILL)
    assert ended.memory() == 0


def test_end_is_described_by_status_or_signal():
    assert describe_end(3) == "status 3"
    assert describe_end(-9) == "signal SIGKILL"


def test_process_with_threads_cannot_fork():
    is_over = threading.Event()
    thread = threading.Thread(target=is_over.wait, name="of a library")
    thread.start()
    try:
        with pytest.raises(CannotForkError, match="of a library"):
            require_no_threads()
    finally:
        is_over.set()
        thread.join()


def test_memory_of_a_child_differs_from_that_of_its_parent():
    pid = children.fork_with_shared_memory()
    if not pid:
        signal.pause()
    try:
        child = process_of(60, pid)
        assert child.memory() > 1
        assert child.age() == pytest.approx(60, abs=5)
    finally:
        child.send(signal.SIGKILL)
        os.waitpid(pid, 0)


def test_process_without_recent_stamps_is_silent(monkeypatch):
    table = LivenessTable(3)
    table.stamp_alive(1)
    table.stamp_read(1)
    pid = os.getpid()
    assert table.take_census(1) == Census([pid], [], [pid])
    assert table.has_begun(1)
    assert not table.has_begun(2)
    monkeypatch.setattr(liveness, "SILENT_SECONDS", -5.0)
    assert table.take_census(1) == Census([], [pid], [])
    assert table.take_census(2) == Census([], [], [])


def test_census_contains_a_refused_reload():
    table = LivenessTable(1)
    assert not table.take_census(0).is_reload_refused
    table.is_reload_refused = True
    assert table.take_census(0) == Census([], [], [], True)


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"host": "127.0.0.1", "port": 8778}, "http://127.0.0.1:8778"),
        ({"host": "::1", "port": 8778, "certificate": "a.pem"}, "https://[::1]:8778"),
        ({"unix_socket": "/run/placement"}, "http+unix:/run/placement"),
    ],
)
def test_settings_reach_a_loader_of_another_release(settings, where):
    text = ServerSettings(**settings).to_json()
    of_another = json.dumps(json.loads(text) | {"an_option_of_the_next_release": 1})
    assert ServerSettings.from_json(of_another) == ServerSettings(**settings)
    assert ServerSettings.from_json(text).url == where
