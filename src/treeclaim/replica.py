# SPDX-License-Identifier: Apache-2.0
"""Keeps a Forest equal to the store: the one place where the two meet."""

import gc
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

from treeclaim import allocator, metrics
from treeclaim.forest.answer.body import Answer
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.solve.search import Search, search
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Changes, Cursor
from treeclaim.model.request import BodyForm, CandidateRequest, SearchOptions
from treeclaim.store import Store

_WHOLE_ANSWER = 16_000_000
"""Bytes of an answer that is made in one piece; longer ones are streamed."""

_LARGE_FOREST = 10_000
"""Providers from which on the garbage collector is spared a Forest."""

_MOST_KEPT = 256
_MOST_BYTES_KEPT = 32_000_000
"""Answers, and their bytes, that are kept until something changes."""


class Replica:
    """One worker's Forest, brought up to date before each use.

    Every read first asks the change feed what was committed since the last one, so it reflects
    all writes committed before it arrived. A lock lets one thread at a time use the Forest: under
    Python's own lock a second one would gain nothing.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._forest = Forest()
        self._cursor: Cursor | None = None
        self._answers: dict[_Question, _KeptAnswer] = {}
        self._kept = 0
        self._lock = threading.Lock()

    @contextmanager
    def current(self) -> Iterator[Forest]:
        """Give the Forest with everything committed so far; copy out what outlives the block.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        with self._lock:
            self._catch_up()
            yield self._forest

    def _catch_up(self) -> None:
        if self._cursor is None:
            with _made_to_stay(self._forest):
                self._follow()
        else:
            self._follow()

    def _follow(self) -> None:
        begin = perf_counter()
        changes = self._store.changes(self._cursor)
        if changes is None:
            return
        # Should applying fail half-way, the next read must not trust this Forest.
        self._cursor = None
        self._answers.clear()
        self._kept = 0
        self._forest.apply(changes)
        self._cursor = changes.cursor
        _count(changes, len(self._forest.living_rows), perf_counter() - begin)

    def answer(
        self, request: CandidateRequest, options: SearchOptions, form: BodyForm
    ) -> Iterable[bytes]:
        """Return the JSON body that answers a request for candidates, in one or more pieces.

        A short answer is made at once, and kept until something changes: schedulers ask the same
        few questions again and again. For a long one the rest is made while it is sent, from
        values copied out of the Forest, so that a slow client holds nobody up.

        Raises:
            TraitsNotFoundError, ResourceClassNotFoundError: for unknown names.
            StoreUnavailableError: if the database does not answer.
        """
        asked = (request, options, form)
        with self._lock:
            with metrics.phase("feed"):
                self._catch_up()
            known = self._answers.get(asked)
            if known is None:
                with metrics.phase("filter"):
                    question = search(self._forest, request, options)
                with metrics.phase("answer"):
                    answer = Answer(question, form)
                    pieces = _written(question, answer)
                if not isinstance(pieces, bytes):
                    return pieces
                known = _KeptAnswer(pieces, answer.candidates)
                if not options.randomize:
                    self._keep(asked, known)
        metrics.CANDIDATES.inc(known.candidates)
        return [known.body]

    def _keep(self, asked: "_Question", answer: "_KeptAnswer") -> None:
        size = len(answer.body)
        if len(self._answers) >= _MOST_KEPT or self._kept + size > _MOST_BYTES_KEPT:
            self._answers.clear()
            self._kept = 0
        self._answers[asked] = answer
        self._kept += size


@contextmanager
def _made_to_stay(forest: Forest) -> Iterator[None]:
    """Spare the garbage collector the objects of a large Forest that is loaded meanwhile.

    It holds some for each provider, in no cycles and for long. Looking through them again and
    again took a quarter of the time of loading them, and made answers wait afterwards.
    """
    gc.disable()
    try:
        yield
        if len(forest) >= _LARGE_FOREST:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            # What was read from the database is a tenth of the memory, and not needed any more.
            allocator.give_back()
    finally:
        gc.enable()


_Question = tuple[CandidateRequest, SearchOptions, BodyForm]


@dataclass(frozen=True, slots=True)
class _KeptAnswer:
    """An answer that holds until something changes.

    Attributes:
        body: JSON.
        candidates: How many are in it.
    """

    body: bytes
    candidates: int


def _written(question: Search, answer: Answer) -> bytes | Iterator[bytes]:
    pieces = answer.pieces()
    first: list[bytes | memoryview] = []
    size = 0
    for piece in pieces:
        first.append(piece)
        size += len(piece)
        if size > _WHOLE_ANSWER and question.is_eager:
            answer.detach()
            return _chain(first, pieces, answer, question.budget)
    return b"".join(first)


def _count(changes: Changes, providers: int, seconds: float) -> None:
    if changes.complete:
        metrics.FOREST_LOAD_SECONDS.observe(seconds)
    else:
        metrics.FOREST_CHANGED.inc(len(changes.records) + len(changes.removed))
    worker = str(os.getpid())
    metrics.FOREST_PROVIDERS.labels(worker).set(providers)
    metrics.FEED_POSITION.labels(worker).set(sum(changes.cursor.values()))


def _chain(
    first: list[bytes | memoryview],
    rest: Iterator[bytes | memoryview],
    answer: Answer,
    budget: Budget,
) -> Iterator[bytes]:
    # The time in which the client reads is not that of the question.
    with budget.paused():
        yield b"".join(first)
    for piece in rest:
        with budget.paused():
            yield bytes(piece)
    metrics.CANDIDATES.inc(answer.candidates)
