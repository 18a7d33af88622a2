# SPDX-License-Identifier: Apache-2.0
"""A worker's Forest: answers questions within a turn or in a child, and caches answers."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from time import monotonic
from typing import TypeVar

from treeclaim import allocator, metrics
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.listing.texts import ListingTexts
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Cursor
from treeclaim.model.errors import (
    OverloadedError,
    SearchTooLargeError,
    StoreUnavailableError,
)
from treeclaim.model.timing import WRITE
from treeclaim.replica.answer_cache import AnswerCache, Piece, SlowQuestions, WholeAnswer
from treeclaim.replica.child import WHOLE_ANSWER, pickled
from treeclaim.replica.child_pool import AnswerStream, ChildPool
from treeclaim.replica.child_process import Child
from treeclaim.replica.following import Follower, SharedForest
from treeclaim.replica.question import (
    LONGEST_WAIT,
    Arrival,
    HoldsQuery,
    Question,
)
from treeclaim.replica.turn import OutOfPatienceError, Turn, make_attempt_check
from treeclaim.store import Store
from treeclaim.store.database.transactions import ReadTransaction

ForestResult = TypeVar("ForestResult")
Result = TypeVar("Result")

_SLOW_PLACES = 8
"""Most questions that have or await a child, by default."""

_UPKEEP_PAUSE = 0.5
"""Seconds without a read after which an idle worker reads the feed. Applying a thousand writes takes ten milliseconds
of the turn."""

_COMPACTION_PAUSE = 0.005
"""Seconds between two steps of compaction, each of about a millisecond: a million providers need five seconds."""

_LOG = logging.getLogger(__name__)
_CHILD_LOG = "A question goes to a child: it %s"
_INVENTORY = "inventory"


class Replica:
    """The Forest of a worker, which catches up before each use.

    Every read first polls the change feed, so it reflects every commit before its arrival.

    Attributes:
        follower: The Forest with its position and version; requires `current`.
        listing: Texts of providers; requires `current` or `read_consistently`.
    """

    def __init__(
        self, store: Store, slow_places: int = _SLOW_PLACES, inventory: SharedForest | None = None
    ) -> None:
        """Begin with a Forest of the parent process (`inventory`), or with an empty one."""
        self._store = store
        self.follower = Follower(store, inventory)
        self.turn = Turn()
        self._children = ChildPool(slow_places)
        self.answers = AnswerCache()
        self._has_answered = False
        self.listing = ListingTexts()
        self._slow = SlowQuestions()

    def keep_up(self) -> None:
        """Follow the feed and compact the Forest in a thread, until the store is closed."""
        self._store.repeat("upkeep", _UPKEEP_PAUSE, self._keep_up_once)

    def _keep_up_once(self) -> float:
        """Do a step of compaction, or else read the feed; return the seconds until the next step."""
        # A later step retries.
        with suppress(OverloadedError, StoreUnavailableError), self.turn.occupy(LONGEST_WAIT):
            if self.follower.forest.is_compacting:
                self.follower.tidy()
                return _COMPACTION_PAUSE
            self.follower.catch_up(monotonic() - _UPKEEP_PAUSE)
        return _UPKEEP_PAUSE

    @contextmanager
    def borrow_forest(self) -> Iterator[Forest]:
        """Hold the turn at the caught-up Forest, for short work; copy objects that outlive the block.

        Raises:
            StoreUnavailableError: if the database does not respond.
            OverloadedError: if waiting for the turn timed out.
        """
        begin = monotonic()
        with self.turn.occupy(LONGEST_WAIT, resource=_INVENTORY):
            self.follower.catch_up(begin)
            yield self.follower.forest

    def read_consistently(
        self,
        read_forest: Callable[[Forest, Cursor], ForestResult],
        read_store: Callable[[ReadTransaction, ForestResult], Result],
    ) -> Result:
        """Read from the Forest within the turn, then from the database in a snapshot of the same moment.

        Args:
            read_forest: Receives the Forest and its position in the feed.
            read_store: Receives the transaction of the snapshot, and the result of `read_forest`.

        Raises:
            StoreUnavailableError: if the database does not respond.
            OverloadedError: if waiting for the turn timed out.
        """
        begin = monotonic()
        turn = ExitStack()
        is_first = True

        def acquire_turn() -> None:
            turn.enter_context(self.turn.occupy(LONGEST_WAIT, resource=_INVENTORY))

        def read(transaction: ReadTransaction) -> Result:
            nonlocal is_first
            if not is_first:
                # The connection was lost.
                acquire_turn()
            is_first = False
            try:
                self.follower.catch_up_within(transaction)
                result = read_forest(self.follower.forest, self.follower.cursor)
            finally:
                turn.close()
            return read_store(transaction, result)

        # The turn comes first, because no thread may wait for it with a connection.
        with turn:
            acquire_turn()
            # A full load happens here, and not while the connection below is in use.
            self.follower.catch_up(begin)
            return self._store.read(read)

    def answer(self, question: Question, arrival: Arrival | None = None) -> Iterable[Piece]:
        """Return the JSON body that answers a question: a list of all pieces, or a stream of pieces.

        A short answer is computed within the turn, and cached until the Forest changes. A child computes long
        answers, and those that need database parts. A caller that does not exhaust a stream must `close` it.

        Raises:
            SearchGivenUpError, SearchTooLargeError: if it exceeds the limit of time or memory.
            StoreUnavailableError: if the database does not respond.
            OverloadedError: if no place or process is free for a child, or another plan runs.
            ClientGoneError: if the client has disconnected.
            TreeclaimError: if the question is invalid.
        """
        arrival = arrival or Arrival.now()
        outcome: WholeAnswer | AnswerStream | None = None
        if question.reads is None:
            outcome = self._try_within_turn(question, arrival)
        if outcome is None:
            with metrics.measure_phase("slow"):
                outcome = self._answer_in_child(question, arrival)
        if not isinstance(outcome, WholeAnswer):
            return outcome
        metrics.CANDIDATES.inc(outcome.candidates)
        return list(outcome.pieces)

    @contextmanager
    def _hold_turn(self, arrival: Arrival, holds: HoldsQuery) -> Iterator[tuple[Forest, Arrival]]:
        """Hold the turn; yield the Forest, and the arrival extended by the time for catching up."""
        begin = monotonic()
        if not self.turn.acquire(arrival.wait, arrival.is_gone):
            raise arrival.overload_error(_INVENTORY)
        try:
            start = monotonic()
            with metrics.measure_phase("feed"):
                self.follower.catch_up(begin)
                forest = self.follower.with_holds(holds)
            yield forest, arrival.extended_by(monotonic() - start)
        finally:
            self.turn.release()

    def _try_within_turn(self, question: Question, arrival: Arrival) -> WholeAnswer | None:
        """Return a cached answer, or a new one if its computation is short; else None."""
        if question.is_hard or self._slow.has(question.key):
            _LOG.debug(
                _CHILD_LOG, "is hard by its form" if question.is_hard else "was long before"
            )
            return None
        with self._hold_turn(arrival, question.holds) as (forest, extended_arrival):
            version = self.follower.version
            cached_answer = self.answers.find(version, question.key)
            if cached_answer is not None:
                return cached_answer
            check = make_attempt_check(self.turn, extended_arrival)
            budget = Budget(None, arrival.memory, interrupted=check)
            try:
                answer = _attempt(question, forest, budget)
            except OutOfPatienceError as error:
                _LOG.debug(_CHILD_LOG, error)
                self._slow.note_once(question.key)
                return None
            self._slow.forget(question.key)
            if question.is_repeatable:
                self.answers.keep(version, question.key, answer)
            if not self._has_answered:
                # The first search builds columns with temporary memory: 45 MB for a million providers, in each
                # worker that shares the Forest.
                self._has_answered = True
                allocator.trim_heap()
            return answer

    def _answer_in_child(self, question: Question, arrival: Arrival) -> WholeAnswer | AnswerStream:
        if question.holds.has_sums:
            # Summing very many holds takes a second, which must not be in the turn.
            question = question.with_holds_as_part()
        version: int | None = None

        def start() -> Child | WholeAnswer:
            nonlocal version
            if question.reads is not None:
                return self._start_reading(question, arrival)
            with self._hold_turn(arrival, question.holds) as (forest, extended_arrival):
                version = self.follower.version
                return self.answers.find(version, question.key) or _fork(
                    question, forest, extended_arrival
                )

        outcome = self._children.answer(arrival, start, is_plan=question.is_plan)
        if isinstance(outcome, WholeAnswer) and question.is_repeatable and version is not None:
            self.answers.keep(version, question.key, outcome)
        return outcome

    def _start_reading(self, question: Question, arrival: Arrival) -> Child:
        """Start a child, read its database parts at the same moment, and send them."""
        child: Child | None = None

        def fork(forest: Forest, cursor: Cursor) -> tuple[Child, Cursor]:
            nonlocal child
            if child is not None:
                # The connection was lost.
                child.end()
            child = _fork(question, forest, arrival)
            return child, cursor

        def read_parts(
            transaction: ReadTransaction, forked: tuple[Child, Cursor]
        ) -> tuple[Child, list[bytes]]:
            forked_child, cursor = forked
            parts: list[bytes] = []
            size = 0
            for part in question.reads(transaction, cursor) if question.reads else ():
                arrival.check()
                parts.append(pickled(part))
                size += len(parts[-1])
                if size > arrival.memory:
                    raise SearchTooLargeError(arrival.memory // 1_000_000)
            return forked_child, parts

        try:
            started_child, parts = self.read_consistently(fork, read_parts)
            started_child.feed(parts)
        except BaseException:
            if child is not None:
                child.end()
            raise
        return started_child


def _attempt(question: Question, forest: Forest, budget: Budget) -> WholeAnswer:
    stages = budget.stages
    try:
        answer = question.work(forest, iter(()), budget)
        pieces: list[Piece] = []
        size = candidates = 0
        stages.enter(WRITE)
        for piece in answer:
            if isinstance(piece, int):
                candidates = piece
                continue
            pieces.append(piece)
            size += len(piece)
            if size > WHOLE_ANSWER:
                raise OutOfPatienceError("has a long answer")
        return WholeAnswer.of(pieces, candidates)
    finally:
        # Failed attempts count too, because they are the longest.
        metrics.observe_stages(metrics.SEARCH_SECONDS, stages)


def _fork(question: Question, forest: Forest, arrival: Arrival) -> Child:
    try:
        return Child(question, forest, arrival)
    except OSError as error:
        raise OverloadedError("processes") from error
