# SPDX-License-Identifier: Apache-2.0
"""Scripted questions, and checks for leftover children."""

import contextlib
import os
import threading
from pathlib import Path

import psutil

from treeclaim.replica import Arrival, Question

_RUNNING_BEFORE = set()
"""Children from before a test, such as shared servers."""


def ignore_running_children():
    """Exclude the running children from `children`."""
    _RUNNING_BEFORE.clear()
    _RUNNING_BEFORE.update(process.pid for process in psutil.Process().children())


def child_processes():
    """The children created by the test."""
    return [child for child in psutil.Process().children() if child.pid not in _RUNNING_BEFORE]


def children():
    """The process ids of the children created by the test."""
    return [child.pid for child in child_processes()]


def pipes():
    """The pipes that this process has open."""
    result = set()
    for descriptor in descriptors_of(os.getpid()):
        with contextlib.suppress(OSError):
            result.add(str(descriptor.readlink()))
    return {descriptor for descriptor in result if descriptor.startswith("pipe:")}


def descriptors_of(process):
    """The open descriptors of a process, as links."""
    return list(Path(f"/proc/{process}/fd").iterdir())


def scripted(script, key=None, *, is_hard=True, is_repeatable=False):
    """A question with an answer from the test; it runs in a child unless `is_hard` is false."""

    def work(forest, _parts, budget):
        yield from script(forest, budget)
        return 0

    return Question(work, key, is_hard=is_hard, is_repeatable=is_repeatable)


def loop_with_checks(_forest, budget):
    """Compute forever, and check the clock."""
    while True:
        budget.check()
    yield b""


def loop_without_checks(_forest, _budget):
    """Compute forever, without a check of the clock."""
    while True:
        pass
    yield b""


def answer_in_thread(replica, question, **limits):
    """Run a question in a thread; return the thread and the list that receives the outcome."""
    outcome: list[bytes | Exception] = []

    def work():
        try:
            outcome.append(b"".join(replica.answer(question, Arrival.now(**limits))))
        except Exception as error:  # noqa: BLE001 - the test checks it
            outcome.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread, outcome
