# SPDX-License-Identifier: Apache-2.0
"""A worker's Forest: questions are answered within a turn, or in a child, with shared caches."""

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
from treeclaim.replica.child import WHOLE_ANSWER
from treeclaim.replica.child_pool import AnswerStream, ChildPool
from treeclaim.replica.child_process import Child
from treeclaim.replica.following import FollowedForest, Follower
from treeclaim.replica.frames import pickled
from treeclaim.replica.kept import AnswerCache, KeptAnswer, Piece, SlowQuestions
from treeclaim.replica.question import (
    LONGEST_WAIT,
    Arrival,
    CountedPieces,
    HoldsQuery,
    Question,
)
from treeclaim.replica.turn import AttemptClock, OutOfPatienceError, Turn
from treeclaim.store import Store
from treeclaim.store.database.transactions import ReadTransaction

Found = TypeVar("Found")
Result = TypeVar("Result")

_SLOW_PLACES = 8
"""Questions that have or await a child, by default."""

_UPKEEP_PAUSE = 0.5
"""Seconds without a read after which the feed is read all the same: of a thousand writes, which take a hundredth of a
second of the turn."""

_COMPACTION_PAUSE = 0.005
"""Seconds between two steps of compaction, each of about a millisecond: a million providers take five seconds."""

_LOG = logging.getLogger(__name__)
_TO_A_CHILD = "A question goes to a child: it %s"
_INVENTORY = "inventory"


class AnswerTooLongError(Exception):
    """The answer is too long to be made within a turn, whatever the time."""


class Replica:
    """The Forest of a worker, brought up to date before each use.

    Every read first asks the change feed what was committed since the last one, so it reflects
    all writes committed before it arrived.

    Attributes:
        turn: The gate to the Forest.
        listing: Texts of providers, to be used within `current` or `at_one_moment`.
    """

    def __init__(
        self, store: Store, slow_places: int = _SLOW_PLACES, picture: FollowedForest | None = None
    ) -> None:
        """Begin with a Forest, or with an empty one.

        Args:
            store: The database to follow.
            slow_places: Questions that may have or await a child.
            picture: The Forest, where another process has loaded it.
        """
        self._store = store
        self._follower = Follower(store, picture)
        self.turn = Turn()
        self._children = ChildPool(slow_places)
        self._answers = AnswerCache()
        self._is_settled = False
        self.listing = ListingTexts()
        self._slow = SlowQuestions()

    def keep_up(self) -> None:
        """Follow the feed and keep the Forest small, in a thread of this process, until the store is closed."""
        self._store.repeat("upkeep", _UPKEEP_PAUSE, self._keep_up_once)

    def _keep_up_once(self) -> float:
        """Compact the Forest a little, or read the feed; return the seconds until the next step."""
        # The next step tries again.
        with suppress(OverloadedError, StoreUnavailableError), self.turn.held(LONGEST_WAIT):
            if not self._follower.forest.is_tidy:
                self._follower.tidy()
                return _COMPACTION_PAUSE
            self._follower.catch_up(monotonic() - _UPKEEP_PAUSE)
        return _UPKEEP_PAUSE

    @contextmanager
    def current(self) -> Iterator[Forest]:
        """Give the Forest with everything committed so far, for short work.

        Copy out what outlives the block.

        Raises:
            StoreUnavailableError: if the database does not answer.
            OverloadedError: if the Forest was not free in time.
        """
        began = monotonic()
        with self.turn.held(LONGEST_WAIT, what=_INVENTORY):
            self._follower.catch_up(began)
            yield self._follower.forest

    @property
    def forest(self) -> Forest:
        """Return the Forest itself, the same until all is loaded anew, within a block of `current`."""
        return self._follower.forest

    @property
    def cursor(self) -> Cursor:
        """Return the Forest's position in the feed, within a block of `current`."""
        return self._follower.cursor

    @property
    def version(self) -> int:
        """Return a number that changes with the Forest, within a block of `current`."""
        return self._follower.version

    def known(self, key: bytes) -> KeptAnswer | None:
        """Return an answer that was kept and still holds, within a block of `current`."""
        return self._answers.find(self._follower.version, key)

    def keep(self, version: int, key: bytes, answer: KeptAnswer) -> None:
        """Keep an answer until the Forest changes.

        Args:
            version: The version of the Forest, when the answer was read from it.
            key: The key of the question, see `questions.key_of`.
            answer: The answer.
        """
        self._answers.keep(version, key, answer)

    def at_one_moment(
        self,
        of_forest: Callable[[Forest, Cursor], Found],
        of_store: Callable[[ReadTransaction, Found], Result],
    ) -> Result:
        """Read from the Forest, then from the database as of the same moment.

        Only the first of the two keeps others from the Forest.

        Args:
            of_forest: Is given the Forest and its position in the feed.
            of_store: Is given a transaction that sees just what the Forest showed, and the result
                of the first function.

        Raises:
            StoreUnavailableError: if the database does not answer.
            OverloadedError: if the Forest was not free in time.
        """
        began = monotonic()
        turn = ExitStack()
        is_first = True

        def take_turn() -> None:
            turn.enter_context(self.turn.held(LONGEST_WAIT, what=_INVENTORY))

        def read(transaction: ReadTransaction) -> Result:
            nonlocal is_first
            if not is_first:
                # A connection was lost.
                take_turn()
            is_first = False
            try:
                self._follower.catch_up_within(transaction)
                result = of_forest(self._follower.forest, self._follower.cursor)
            finally:
                turn.close()
            return of_store(transaction, result)

        # The turn comes first: no thread may wait for it while it has a connection.
        with turn:
            take_turn()
            # Loading everything is done differently, and no connection should wait for it.
            self._follower.catch_up(began)
            return self._store.read(read)

    def answer(self, question: Question, arrival: Arrival | None = None) -> Iterable[Piece]:
        """Return the JSON body that answers a question, in one or more pieces; all of them in a list.

        A short answer is made at once, and kept until something changes. A longer one is made by a
        child, from the Forest as it was when the question arrived. A child also answers a question that
        reads from the database, which is of the same moment. A caller that does not draw all pieces calls
        `close`, if there is one.

        Raises:
            TreeclaimError: what the question itself gives reason for.
            SearchGivenUpError, SearchTooLargeError: if it takes too much time, or memory.
            StoreUnavailableError: if the database does not answer.
            OverloadedError: if too many ask too much, another plan is made, or the system has no room for a child.
            ClientGoneError: if the client has hung up.
        """
        arrival = arrival or Arrival.now()
        outcome: KeptAnswer | AnswerStream | None = None
        if question.reads is None:
            outcome = self._try_within_turn(question, arrival)
        if outcome is None:
            with metrics.phase("slow"):
                outcome = self._answer_in_child(question, arrival)
        if not isinstance(outcome, KeptAnswer):
            return outcome
        metrics.CANDIDATES.inc(outcome.candidates)
        return list(outcome.pieces)

    @contextmanager
    def _turn_of(self, arrival: Arrival, holds: HoldsQuery) -> Iterator[tuple[Forest, Arrival]]:
        """Give the Forest, and the question with the time for catching up added to its own."""
        began = monotonic()
        if not self.turn.acquire(arrival.wait, arrival.is_gone):
            raise arrival.overload_error(_INVENTORY)
        try:
            entered = monotonic()
            with metrics.phase("feed"):
                self._follower.catch_up(began)
                forest = self._follower.with_holds(holds)
            yield forest, arrival.extended_by(monotonic() - entered)
        finally:
            self.turn.release()

    def _try_within_turn(self, question: Question, arrival: Arrival) -> KeptAnswer | None:
        """Return the answer if it is known or soon found, else None."""
        if question.is_hard or self._slow.has(question.key):
            _LOG.debug(
                _TO_A_CHILD, "is hard by its form" if question.is_hard else "was long before"
            )
            return None
        with self._turn_of(arrival, question.holds) as (forest, later):
            version = self._follower.version
            kept_answer = self._answers.find(version, question.key)
            if kept_answer is not None:
                return kept_answer
            clock = AttemptClock(self.turn, later)
            budget = Budget(None, arrival.memory, interrupted=clock.check)
            try:
                answer = _attempt(question, forest, budget)
            except (OutOfPatienceError, AnswerTooLongError) as error:
                _LOG.debug(_TO_A_CHILD, error)
                self._slow.suspect(question.key)
                return None
            self._slow.acquit(question.key)
            if question.is_repeatable:
                self._answers.keep(version, question.key, answer)
            if not self._is_settled:
                # The first search needed memory to make columns for later ones: with a million providers 45 MB, in
                # each worker of those that share the Forest.
                self._is_settled = True
                allocator.give_back()
            return answer

    def _answer_in_child(self, question: Question, arrival: Arrival) -> KeptAnswer | AnswerStream:
        if question.holds.everywhere:
            # With very many holds the database takes a second to add up their amounts. No other thread needs to wait
            # for the Forest meanwhile.
            question = question.reading_holds()
        version: int | None = None

        def start() -> Child | KeptAnswer:
            nonlocal version
            if question.reads is not None:
                return self._start_reading(question, arrival)
            with self._turn_of(arrival, question.holds) as (forest, later):
                version = self._follower.version
                kept_answer = self._answers.find(version, question.key)
                return _fork(question, forest, later) if kept_answer is None else kept_answer

        outcome = self._children.answer(arrival, start, is_plan=question.is_plan)
        if isinstance(outcome, KeptAnswer) and question.is_repeatable and version is not None:
            self._answers.keep(version, question.key, outcome)
        return outcome

    def _start_reading(self, question: Question, arrival: Arrival) -> Child:
        """Start a child at a moment of the Forest, and send it what is read of that moment.

        Raises:
            OverloadedError: if the system has no room for a child.
        """
        child: Child | None = None

        def of_forest(forest: Forest, cursor: Cursor) -> tuple[Child, Cursor]:
            nonlocal child
            if child is not None:
                # A connection was lost.
                child.end()
            child = _fork(question, forest, arrival)
            return child, cursor

        def of_store(
            transaction: ReadTransaction, begun: tuple[Child, Cursor]
        ) -> tuple[Child, list[bytes]]:
            started, cursor = begun
            parts: list[bytes] = []
            size = 0
            for part in question.reads(transaction, cursor) if question.reads else ():
                arrival.check()
                parts.append(pickled(part))
                size += len(parts[-1])
                if size > arrival.memory:
                    raise SearchTooLargeError(arrival.memory // 1_000_000)
            return started, parts

        try:
            started, parts = self.at_one_moment(of_forest, of_store)
            started.feed(parts)
        except BaseException:
            if child is not None:
                child.end()
            raise
        return started


def _attempt(question: Question, forest: Forest, budget: Budget) -> KeptAnswer:
    stages = budget.stages
    try:
        pieces = CountedPieces(question.work(forest, iter(()), budget))
        parts: list[bytes | memoryview] = []
        size = 0
        stages.enter(WRITE)
        for piece in pieces:
            parts.append(piece)
            size += len(piece)
            if size > WHOLE_ANSWER:
                raise AnswerTooLongError("has a long answer")
        return KeptAnswer.of(parts, pieces.candidates)
    finally:
        # Those that were given up are the longest.
        metrics.tell_stages(metrics.SEARCH_SECONDS, stages)


def _fork(question: Question, forest: Forest, arrival: Arrival) -> Child:
    """Start a child.

    Raises:
        OverloadedError: if the system has no room for a child.
    """
    try:
        return Child(question, forest, arrival)
    except OSError as error:
        raise OverloadedError("processes") from error
