# SPDX-License-Identifier: Apache-2.0
"""A forked process that answers one question from its snapshot of the Forest, and ends.

The parent has other threads, which may hold any lock at the moment of the fork; so the child does
nothing but compute and write to its pipe: no logging, no metrics, no database, no exit handlers.
It gives up every other descriptor, so that no client's connection stays open through it. And it
cannot outlive its parent: both hold a pipe, the lifeline, for which the kernel sends the child a
SIGKILL as soon as the other end is closed. (PR_SET_PDEATHSIG would look at the thread that
forked, which a server may end at any time.)
"""

import fcntl
import gc
import os
import resource
import signal
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.timing import has_passed
from treeclaim.replica.frames import COUNT, MessageKind, pickled, read_parts, send
from treeclaim.replica.question import Arrival, CountedPieces, Question

WHOLE_ANSWER = 16_000_000
"""Bytes of an answer that is made in one piece; longer ones are streamed."""

_FRAME_BYTES = 1 << 20
"""Bytes of a long answer that are sent as one frame: what the pipe holds, so that the parent can pass on
what it reads as it is, and never has to put many megabytes together."""

EXTRA_BYTES = 32_000_000
"""Bytes that a child may take beside those that its search counts: the answer's text, and what Python
copies of the pages that it shares with the worker."""

_MILD, _LOWEST = 5, 19
"""Niceness of a child at first, and later. Its parent, which answers short questions, runs first. At the lowest priority
a child starves beside processes that never pause, and most questions are short. A plan, of which only one runs at a
time, stays at the first."""

MILD_SECONDS = 1.0
"""Seconds of CPU time that a child has at the milder priority."""

NO_PIPE = -1
"""Stands for a pipe that does not exist."""

_FIRST_TO_GO = b"1000"
"""Score (oom_score_adj) that makes the kernel kill the child first if memory runs out."""

_KEPT_SIGNALS = (signal.SIGKILL, signal.SIGSTOP)
_IGNORED_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGPIPE,
)
"""Signals that stop or reload a service: the parent decides what they mean."""


class ChildEnds(NamedTuple):
    """The ends of the pipes that the child has.

    Attributes:
        out: For the answer.
        lifeline: The child is killed when its other end is closed.
        parts: For what is read for the child, which begins when its other end is closed; `NO_PIPE` if nothing is read.
    """

    out: int
    lifeline: int
    parts: int


def run_child(question: Question, forest: Forest, arrival: Arrival, ends: ChildEnds) -> NoReturn:
    """Run the child."""
    code = 1
    try:
        gc.disable()
        _end_with_parent(ends.lifeline)
        # A signal that comes before the rest is closed is not for this process either.
        _ignore_signals()
        _close_all_but(set(ends) - {NO_PIPE})
        _lower_priority(for_good=not question.is_plan)
        _answer_within_memory(question, forest, arrival, ends)
        code = 0
    finally:
        # Whatever is on the stack, nothing of the parent's may run here.
        os._exit(code)


def _end_with_parent(lifeline_end: int) -> None:
    fcntl.fcntl(lifeline_end, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline_end, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(lifeline_end, fcntl.F_GETFL)
    fcntl.fcntl(lifeline_end, fcntl.F_SETFL, flags | os.O_ASYNC)


def _close_all_but(kept: set[int]) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in {0, 1, 2} - kept:
        os.dup2(nothing, standard)
    for entry in list(Path("/proc/self/fd").iterdir()):
        descriptor = int(entry.name)
        if descriptor > 2 and descriptor not in kept:  # noqa: PLR2004 - standard descriptors
            # The one of this listing itself is closed by now.
            with suppress(OSError):
                os.close(descriptor)


def _ignore_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - set(_KEPT_SIGNALS):
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN if number in _IGNORED_SIGNALS else signal.SIG_DFL)


def _lower_priority(*, for_good: bool) -> None:
    os.nice(_MILD)
    if for_good:
        # The kernel says when the time is used up, whatever the search does then.
        signal.signal(signal.SIGPROF, lambda *_: os.nice(_LOWEST - _MILD))
        signal.setitimer(signal.ITIMER_PROF, MILD_SECONDS)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(_FIRST_TO_GO)


def _answer_within_memory(
    question: Question, forest: Forest, arrival: Arrival, ends: ChildEnds
) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    needed_bytes = _data_bytes() + arrival.memory + EXTRA_BYTES
    limit = needed_bytes if most == resource.RLIM_INFINITY else min(needed_bytes, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        _answer(question, forest, arrival, ends)
    except MemoryError:
        # What was on the stack is free by now; a little more is needed to say so.
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        send(ends.out, MessageKind.TOO_LARGE, b"")


def _data_bytes() -> int:
    """Return the bytes that count against the limit now."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def _answer(question: Question, forest: Forest, arrival: Arrival, ends: ChildEnds) -> None:
    clock, out = _Clock(arrival), ends.out
    budget = Budget(None, arrival.memory, interrupted=clock.check)
    try:
        parts = read_parts(ends.parts) if question.reads else iter(())
        pieces = CountedPieces(question.work(forest, parts, budget))
        first: list[bytes | memoryview] = []
        size = 0
        for piece in pieces:
            size += len(piece)
            first.append(piece)
            if size > WHOLE_ANSWER:
                clock.send(out, b"".join(first))
                first.clear()
        if size <= WHOLE_ANSWER:
            send(out, MessageKind.WHOLE, b"".join(first))
        send(out, MessageKind.END, COUNT.pack(pieces.candidates))
    except TreeclaimError as error:
        send(out, MessageKind.REFUSAL, pickled(error))
    except (MemoryError, OSError):
        raise
    except Exception:  # noqa: BLE001
        # It is the worker that logs it, and answers.
        send(out, MessageKind.FAILED, traceback.format_exc().encode())


class _Clock:
    """The deadline: of everything until the answer begins, then of computing alone."""

    def __init__(self, arrival: Arrival) -> None:
        self._arrival = arrival

    def check(self) -> None:
        """Raise `SearchGivenUpError` if the time is over."""
        if has_passed(self._arrival.end):
            raise self._arrival.timeout_error()

    def send(self, out: int, piece: bytes) -> None:
        """Send a piece; a slow client may delay this."""
        begin = time.monotonic()
        view = memoryview(piece)
        for start in range(0, len(view), _FRAME_BYTES):
            send(out, MessageKind.PIECE, view[start : start + _FRAME_BYTES])
        self._arrival = self._arrival.extended_by(time.monotonic() - begin)
