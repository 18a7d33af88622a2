# SPDX-License-Identifier: Apache-2.0
"""Keeps a Forest equal to the store: the one place where the two meet."""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter

from treeclaim import metrics
from treeclaim.forest.body import Answer
from treeclaim.forest.forest import Forest
from treeclaim.forest.search import Search, search
from treeclaim.model.changes import Changes, Cursor
from treeclaim.model.request import BodyForm, CandidateRequest, SearchOptions
from treeclaim.store import Store

_WHOLE_ANSWER = 16_000_000
"""Bytes of an answer that is made in one piece; longer ones are streamed."""

_MOST_PREPARED = 16
"""Questions whose preparation is kept; each holds some numbers for each provider that fits."""


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
        self._prepared: dict[CandidateRequest, Search] = {}
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
        begin = perf_counter()
        changes = self._store.changes(self._cursor)
        if changes is None:
            return
        # Should applying fail half-way, the next read must not trust this Forest.
        self._cursor = None
        self._prepared.clear()
        self._forest.apply(changes)
        self._cursor = changes.cursor
        _count(changes, len(self._forest.living_rows), perf_counter() - begin)

    def answer(
        self, request: CandidateRequest, options: SearchOptions, form: BodyForm
    ) -> Iterable[bytes]:
        """Return the JSON body that answers a request for candidates, in one or more pieces.

        A short answer is made at once. For a long one the rest is made while it is sent, from
        values copied out of the Forest, so that a slow client holds nobody up.

        Raises:
            TraitsNotFoundError, ResourceClassNotFoundError: for unknown names.
            StoreUnavailableError: if the database does not answer.
        """
        with self._lock:
            with metrics.phase("feed"):
                self._catch_up()
            with metrics.phase("filter"):
                question = self._search(self._forest, request, options)
            with metrics.phase("answer"):
                return _written(question, form)

    def _search(self, forest: Forest, request: CandidateRequest, options: SearchOptions) -> Search:
        """Prepare a search; between two changes, the same question is prepared once."""
        known = self._prepared.get(request)
        if known is not None and known.options is options:
            return known
        if len(self._prepared) >= _MOST_PREPARED:
            self._prepared.clear()
        prepared = self._prepared[request] = search(forest, request, options)
        return prepared


def _written(question: Search, form: BodyForm) -> Iterable[bytes]:
    answer = Answer(question, form)
    pieces = answer.pieces()
    first: list[bytes | memoryview] = []
    size = 0
    for piece in pieces:
        first.append(piece)
        size += len(piece)
        if size > _WHOLE_ANSWER and question.is_eager:
            answer.detach()
            return _chain(first, pieces, answer)
    metrics.CANDIDATES.inc(answer.candidates)
    return [b"".join(first)]


def _count(changes: Changes, providers: int, seconds: float) -> None:
    if changes.complete:
        metrics.FOREST_LOAD_SECONDS.observe(seconds)
    else:
        metrics.FOREST_CHANGED.inc(len(changes.records) + len(changes.removed))
    worker = str(os.getpid())
    metrics.FOREST_PROVIDERS.labels(worker).set(providers)
    metrics.FEED_POSITION.labels(worker).set(sum(changes.cursor.values()))


def _chain(
    first: list[bytes | memoryview], rest: Iterator[bytes | memoryview], answer: Answer
) -> Iterator[bytes]:
    yield b"".join(first)
    yield from map(bytes, rest)
    metrics.CANDIDATES.inc(answer.candidates)
