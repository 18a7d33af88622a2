# SPDX-License-Identifier: Apache-2.0
"""A helper thread survives an exception of its body, and the failure is counted."""

import subprocess
import sys
import threading
from queue import SimpleQueue
from typing import Any, cast

import pytest

from treeclaim import helper_threads
from treeclaim.admin.capacity import Meter
from treeclaim.server.http.pool import ThreadPool
from treeclaim.store import DatabaseSettings, Store

SECONDS = 30
"""For which a test waits at most; it fails then."""


@pytest.fixture
def failures(monkeypatch):
    """The names of failed threads, in their order."""
    result = SimpleQueue()
    monkeypatch.setattr(helper_threads, "failure_listeners", [result.put])
    return result


class FailsFirst:
    """A body that raises at its first call, and reports the second call."""

    def __init__(self, error, answer=None):
        self.again = threading.Event()
        self._errors = [error]
        self._answer = answer

    def __call__(self, *_arguments):
        if self._errors:
            raise self._errors.pop()
        self.again.set()
        return self._answer


ERRORS = [ValueError("a defect"), MemoryError(), SystemExit(1)]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_thread_body_restarts_after_an_exception(failures, error):
    body = FailsFirst(error)
    thread = helper_threads.start_helper_thread("some", body)
    assert body.again.wait(SECONDS)
    thread.join(SECONDS)
    assert not thread.is_alive(), "a body that returns ends its thread"
    assert failures.get(timeout=SECONDS) == "some"
    assert failures.empty()


def test_raising_listener_does_not_stop_the_thread(failures, monkeypatch):
    monkeypatch.setattr(
        helper_threads, "failure_listeners", [FailsFirst(ValueError()), failures.put]
    )
    body = FailsFirst(ValueError())
    helper_threads.start_helper_thread("some", body)
    assert body.again.wait(SECONDS)
    assert failures.get(timeout=SECONDS) == "some"


def test_request_threads_survive_failing_jobs(failures):
    pool = ThreadPool(2, most_waiting=100)
    for _ in range(20):
        assert pool.offer(FailsFirst(ValueError()))
    result = threading.Event()
    assert pool.offer(result.set)
    assert result.wait(SECONDS)
    assert [failures.get(timeout=SECONDS) for _ in range(20)] == ["requests"] * 20


def test_upkeep_thread_survives_a_failure(failures, tmp_path):
    store = Store(DatabaseSettings(f"sqlite:///{tmp_path}/db"))
    step = FailsFirst(ValueError(), answer=SECONDS)
    store.repeat("upkeep", 0, step.__call__)
    assert step.again.wait(SECONDS)
    assert failures.get(timeout=SECONDS) == "upkeep"
    store.close()


def test_metrics_thread_survives_a_failure(failures, monkeypatch):
    monkeypatch.setattr("treeclaim.admin.capacity.Follower", lambda *_, **__: None)
    work = FailsFirst(ValueError())

    class Measuring(Meter):
        """A meter whose thread runs until the process of the tests ends."""

        def measure(self):
            work()

    Measuring(cast("Any", None), [], {}, None).start()
    assert work.again.wait(SECONDS)
    assert failures.get(timeout=SECONDS) == "capacity"


EXITING_HANDLER = """
import logging, threading
from treeclaim import helper_threads, log_queue

class Exiting(logging.StreamHandler):
    def emit(self, record):
        if record.msg == "first":
            raise SystemExit
        super().emit(record)

has_failed = threading.Event()
helper_threads.failure_listeners.append(lambda _: has_failed.set())
handler = log_queue.QueuedHandler(Exiting())
log_queue.start_log_thread()
for text in ("first", "second"):
    handler.emit(logging.LogRecord("name", logging.INFO, "file", 1, text, None, None))
    assert has_failed.wait(10)
"""


def test_log_thread_survives_a_handler_that_exits():
    run = subprocess.run(
        [sys.executable, "-c", EXITING_HANDLER], capture_output=True, timeout=SECONDS, check=True
    )
    assert b"second" in run.stderr
