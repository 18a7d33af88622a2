# SPDX-License-Identifier: Apache-2.0
"""A forked process that answers one question from its snapshot of the Forest, and the frames on its pipes.

Other threads of the parent may hold any lock at the fork. The child therefore only computes and writes to
its pipe: no logging, no metrics, no database, no exit handlers. It closes all other descriptors, because
they would keep clients' connections open.

The child cannot outlive its parent. Both hold a pipe, the lifeline, and the kernel sends SIGKILL to the
child when the parent's end is closed. (PR_SET_PDEATHSIG depends on the thread that forked, which a server
may end at any time.)

A frame has a kind, a length and bytes. Errors and database parts are pickled: both processes run one program.
"""

import fcntl
import gc
import os
import pickle
import resource
import signal
import struct
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import SearchTooLargeError, TreeclaimError
from treeclaim.model.timing import has_passed
from treeclaim.replica.question import Arrival, Question

HEADER = struct.Struct("!BQ")
"""The header of a frame: its kind and the length of its content."""

COUNT = struct.Struct("!Q")
"""The number of candidates of an answer."""


class MessageKind(IntEnum):
    """Kinds of frames on the pipe of answers."""

    WHOLE = 1
    """The whole body; an END follows."""
    PIECE = 2
    """A piece of a long body; more pieces and an END follow."""
    END = 3
    """The answer is complete; the number of candidates."""
    ERROR = 4
    """A pickled TreeclaimError or `ChildFailedError`, instead of an answer."""


class ChildFailedError(Exception):
    """An unexpected error in a child; the message is its traceback."""


WHOLE_ANSWER = 16_000_000
"""Bytes of an unstreamed answer; a longer one is streamed."""

_FRAME_BYTES = 1 << 20
"""Bytes of a frame of a long answer: the capacity of the pipe. The parent can send each read to the client without
joining many megabytes."""

EXTRA_BYTES = 32_000_000
"""Bytes that a child may use beyond the memory limit of its search: the text of the answer, and pages shared with the
worker that it copies on write."""

_FIRST_NICENESS, _LATER_NICENESS = 5, 19
"""Niceness of a child at first, and after `MILD_SECONDS`. The parent, which answers short questions, has priority.
At the lowest priority, a child would starve beside processes that never pause. A plan keeps the first value, because
one plan runs at a time."""

MILD_SECONDS = 1.0
"""Seconds of CPU time of a child at its first niceness."""

_OOM_SCORE = b"1000"
"""The oom_score_adj that makes the kernel kill the child first if memory runs out."""

_KEPT_SIGNALS = (signal.SIGKILL, signal.SIGSTOP)
_IGNORED_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGPIPE,
)
"""Signals that stop or reload a service, which only the parent handles."""


class ChildEnds(NamedTuple):
    """The child's ends of the pipes: for the answer, the lifeline, and the database parts."""

    out: int
    lifeline: int
    parts: int


def send(pipe: int, kind: MessageKind, content: "bytes | memoryview[Any]") -> None:
    """Write a frame; block while the pipe is full."""
    for part in (HEADER.pack(kind, len(content)), content):
        remaining_bytes = memoryview(part).cast("B")
        while len(remaining_bytes):
            remaining_bytes = remaining_bytes[os.write(pipe, remaining_bytes) :]


def pickled(content: object) -> bytes:
    """Pickle an error or a database part."""
    return pickle.dumps(content, pickle.HIGHEST_PROTOCOL)


def unpickled_error(content: bytes) -> Exception:
    """Return an error that a child pickled."""
    error: Exception = pickle.loads(content)  # noqa: S301 - written by our own child
    return error


def read_parts(pipe: int) -> Iterator[Any]:
    """Yield the database parts from the parent until it closes the pipe."""
    with open(pipe, "rb", closefd=False) as stream:
        while header := stream.read(HEADER.size):
            _, length = HEADER.unpack(header)
            yield pickle.loads(stream.read(length))  # noqa: S301 - written by our own parent


def run_child(question: Question, forest: Forest, arrival: Arrival, ends: ChildEnds) -> NoReturn:
    """Answer a question in the child, and exit."""
    code = 1
    try:
        gc.disable()
        _end_with_parent(ends.lifeline)
        # A signal may arrive at any time, so handlers go before the descriptors that they use.
        _ignore_signals()
        _close_all_but(set(ends))
        _lower_priority(again_later=not question.is_plan)
        _answer_within_memory(question, forest, arrival, ends)
        code = 0
    finally:
        # No handler of the parent may run here.
        os._exit(code)


def _end_with_parent(lifeline_end: int) -> None:
    fcntl.fcntl(lifeline_end, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline_end, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(lifeline_end, fcntl.F_GETFL)
    fcntl.fcntl(lifeline_end, fcntl.F_SETFL, flags | os.O_ASYNC)


def _close_all_but(open_descriptors: set[int]) -> None:
    devnull = os.open(os.devnull, os.O_RDWR)
    for standard in {0, 1, 2} - open_descriptors:
        os.dup2(devnull, standard)
    for entry in list(Path("/proc/self/fd").iterdir()):
        descriptor = int(entry.name)
        if descriptor > 2 and descriptor not in open_descriptors:  # noqa: PLR2004 - standard descriptors
            # The descriptor of the directory listing is already closed.
            with suppress(OSError):
                os.close(descriptor)


def _ignore_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - set(_KEPT_SIGNALS):
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN if number in _IGNORED_SIGNALS else signal.SIG_DFL)


def _lower_priority(*, again_later: bool) -> None:
    os.nice(_FIRST_NICENESS)
    if again_later:
        # A signal interrupts even a long step of the search.
        signal.signal(signal.SIGPROF, lambda *_: os.nice(_LATER_NICENESS - _FIRST_NICENESS))
        signal.setitimer(signal.ITIMER_PROF, MILD_SECONDS)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(_OOM_SCORE)


def _answer_within_memory(
    question: Question, forest: Forest, arrival: Arrival, ends: ChildEnds
) -> None:
    _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _data_bytes() + arrival.memory + EXTRA_BYTES
    if hard_limit != resource.RLIM_INFINITY:
        limit = min(limit, hard_limit)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard_limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    error: Exception
    try:
        _send_answer(question, forest, arrival, ends)
    except OSError:
        # The parent has closed the pipe.
        raise
    except MemoryError:
        resource.setrlimit(resource.RLIMIT_DATA, (hard_limit, hard_limit))
        error = SearchTooLargeError(arrival.memory // 1_000_000)
    except TreeclaimError as refusal:
        error = refusal
    except Exception:  # noqa: BLE001 - the worker logs the error and answers
        error = ChildFailedError(traceback.format_exc())
    else:
        return
    # Sent after the handlers, when the memory of the search's frames is free again.
    send(ends.out, MessageKind.ERROR, pickled(error))


def _data_bytes() -> int:
    """Return the bytes that RLIMIT_DATA counts."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def _send_answer(question: Question, forest: Forest, arrival: Arrival, ends: ChildEnds) -> None:
    out = ends.out
    sending_seconds = 0.0

    def check() -> None:
        # Waiting for a slow client does not count.
        if has_passed(arrival.end + sending_seconds):
            raise arrival.timeout_error()

    def stream(pieces: Iterable[bytes | memoryview]) -> None:
        nonlocal sending_seconds
        begin = time.monotonic()
        view = memoryview(b"".join(pieces))
        for start in range(0, len(view), _FRAME_BYTES):
            send(out, MessageKind.PIECE, view[start : start + _FRAME_BYTES])
        sending_seconds += time.monotonic() - begin

    budget = Budget(None, arrival.memory, interrupted=check)
    unsent_pieces: list[bytes | memoryview] = []
    size = candidates = 0
    for piece in question.work(forest, read_parts(ends.parts), budget):
        if isinstance(piece, int):
            candidates = piece
            continue
        size += len(piece)
        unsent_pieces.append(piece)
        if size > WHOLE_ANSWER:
            stream(unsent_pieces)
            unsent_pieces.clear()
    if size <= WHOLE_ANSWER:
        send(out, MessageKind.WHOLE, b"".join(unsent_pieces))
    send(out, MessageKind.END, COUNT.pack(candidates))
