# SPDX-License-Identifier: Apache-2.0
"""Scripted questions, and checks for leftover children."""

import contextlib
import os
import threading
from pathlib import Path

import psutil

from treeclaim.replica import Arrival, Question

_OTHERS = set()
"""Children that ran before a test began: servers that tests share."""


def forget_others():
    """Leave out of `children` what runs already."""
    _OTHERS.clear()
    _OTHERS.update(process.pid for process in psutil.Process().children())


def child_processes():
    """The children that were made since the test began."""
    return [child for child in psutil.Process().children() if child.pid not in _OTHERS]


def children():
    """The process ids of the children that were made since the test began."""
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


def endless(_forest, budget):
    """Compute and check the clock for ever, without a result."""
    while True:
        budget.check()
    yield b""


def deaf(_forest, _budget):
    """Compute without looking at the clock."""
    while True:
        pass
    yield b""


def answer_in_thread(replica, question, **how):
    """Run a question in a thread; returns it and the list to which the outcome comes."""
    outcome: list[bytes | Exception] = []

    def work():
        try:
            outcome.append(b"".join(replica.answer(question, Arrival.now(**how))))
        except Exception as error:  # noqa: BLE001 - it is looked at by the test
            outcome.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread, outcome
