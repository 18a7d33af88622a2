# SPDX-License-Identifier: Apache-2.0
"""A worker's Forest: questions are answered within a turn, or in a child, with shared caches."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TypeVar

from treeclaim import allocator, metrics
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.listing.texts import ListingTexts
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Cursor
from treeclaim.model.errors import OverloadedError, SearchTooLargeError
from treeclaim.model.stages import WRITE
from treeclaim.replica.asking import (
    LONGEST_WAIT,
    NO_HOLDS,
    Asked,
    HeldAsked,
    HoldingQuestion,
    Question,
    ReadingQuestion,
)
from treeclaim.replica.child import WHOLE_ANSWER
from treeclaim.replica.child_pool import AnswerStream, ChildPool
from treeclaim.replica.child_process import Child
from treeclaim.replica.following import FollowedForest, Follower, Tidying
from treeclaim.replica.frames import packed
from treeclaim.replica.kept import KeptAnswer, KeptAnswers, LongQuestions, Piece
from treeclaim.replica.turn import AttemptClock, HeldTurn, OutOfPatienceError, Turn
from treeclaim.store import Store
from treeclaim.store.database.transactions import ReadTransaction

Found = TypeVar("Found")
Result = TypeVar("Result")

_SLOW_PLACES = 8
"""Questions that have or await a child, by default."""

_LOG = logging.getLogger(__name__)
_TO_A_CHILD = "A question goes to a child: it %s"
_WHAT = "inventory"
_PROCESSES = "processes"


class AnswerTooLongError(Exception):
    """The answer is too long to be made within a turn, whatever the time."""


class Replica:
    """One worker's Forest, brought up to date before each use.

    Every read first asks the change feed what was committed since the last one, so it reflects
    all writes committed before it arrived.

    Attributes:
        turn: Whose turn it is at the Forest.
        listing: Texts of providers, to be used within `current` or `at_one_moment`.
    """

    def __init__(
        self, store: Store, slow_places: int = _SLOW_PLACES, picture: FollowedForest | None = None
    ) -> None:
        """Begin with a Forest, or with an empty one.

        Args:
            store: What to follow.
            slow_places: Questions that may have or await a child.
            picture: The Forest, where another process has loaded it.
        """
        self._store = store
        self._follower = Follower(store, picture)
        self.turn = Turn()
        self._tidying = Tidying(self.turn, self._follower)
        self._children = ChildPool(slow_places)
        self._answers = KeptAnswers()
        self._is_settled = False
        self.listing = ListingTexts()
        self._long = LongQuestions()

    @contextmanager
    def current(self, holds: HeldAsked = NO_HOLDS) -> Iterator[Forest]:
        """Give the Forest with everything committed so far, for short work.

        Copy out what outlives the block.

        Raises:
            StoreUnavailableError: if the database does not answer.
            OverloadedError: if the Forest was not free in time.
        """
        began = monotonic()
        if not self.turn.acquire(LONGEST_WAIT):
            raise OverloadedError(_WHAT)
        try:
            self._catch_up(began)
            yield self._follower.with_holds(holds)
        finally:
            self.turn.release()

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
            answer: What would be answered again.
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
            of_forest: Is given the Forest and how far it has come.
            of_store: Is given a transaction that sees just what the Forest showed, and what the
                first function returned.

        Raises:
            StoreUnavailableError: if the database does not answer.
            OverloadedError: if the Forest was not free in time.
        """
        turn = HeldTurn(self.turn)
        began = monotonic()

        def read(transaction: ReadTransaction) -> Result:
            # A connection that was lost makes this run again.
            turn.take()
            try:
                self._follower.catch_up_within(transaction)
                result = of_forest(self._follower.forest, self._follower.cursor)
            finally:
                turn.give()
            return of_store(transaction, result)

        # The turn comes first: nobody may wait for it while holding a connection.
        turn.take()
        try:
            # Loading everything is done differently, and no connection should wait for it.
            self._catch_up(began)
            return self._store.read(read)
        finally:
            turn.give()

    def answer(self, question: Question, asked: Asked | None = None) -> Iterable[Piece]:
        """Return the JSON body that answers a question, in one or more pieces; all of them in a list.

        A short answer is made at once, and kept until something changes. What takes longer is
        made by a child, from the Forest as it was when the question arrived. A caller that does not
        draw all pieces calls `close`, if there is one.

        Raises:
            TreeclaimError: what the question itself gives reason for.
            SearchGivenUpError, SearchTooLargeError: if it takes too much time, or memory.
            StoreUnavailableError: if the database does not answer.
            OverloadedError: if too many ask too much.
            ClientGoneError: if the client has hung up.
        """
        asked = asked or Asked.now()
        outcome: KeptAnswer | AnswerStream | None = self._try_within_turn(question, asked)
        if outcome is None:
            with metrics.phase("slow"):
                outcome = self._answer_in_child(question, asked)
        return _pieces_of(outcome)

    def answer_reading(self, question: ReadingQuestion, asked: Asked) -> Iterable[Piece]:
        """Return the JSON body that answers a question for which more is read than the Forest.

        It is made by a child, from the Forest and the database as they were at one moment. Nothing of
        it is kept.

        Raises:
            TreeclaimError: as `answer` does; OverloadedError too where a plan is made already, or the
                system has no room for a child.
        """
        with metrics.phase("slow"):
            outcome = self._read_slowly(question, asked)
        return _pieces_of(outcome)

    def _read_slowly(self, question: ReadingQuestion, asked: Asked) -> KeptAnswer | AnswerStream:
        def start() -> Child:
            return self._started_reading(question, asked)

        if question.is_plan:
            return self._children.answer_plan(asked, start)
        return self._children.answer(asked, start)

    def _started_reading(self, question: ReadingQuestion, asked: Asked) -> Child:
        """Start a child at a moment of the Forest, and send it what is read of that moment.

        Raises:
            OverloadedError: if the system has no room for a child.
        """
        children: list[Child] = []

        def of_forest(forest: Forest, cursor: Cursor) -> Cursor:
            # A connection that was lost makes this run again.
            while children:
                children.pop().end()
            children.append(_fork(question, forest, asked))
            return cursor

        def of_store(transaction: ReadTransaction, cursor: Cursor) -> list[bytes]:
            parts: list[bytes] = []
            size = 0
            for part in question.reads(transaction, cursor):
                asked.check()
                parts.append(packed(part))
                size += len(parts[-1])
                if size > asked.memory:
                    raise SearchTooLargeError(asked.memory // 1_000_000)
            return parts

        try:
            parts = self.at_one_moment(of_forest, of_store)
            children[0].feed(parts)
        except BaseException:
            while children:
                children.pop().end()
            raise
        return children[0]

    def _catch_up(self, since: float) -> None:
        self._follower.catch_up(since)
        self._tidying.wake()

    @contextmanager
    def _turn_of(self, asked: Asked, holds: HeldAsked) -> Iterator[Forest]:
        began = monotonic()
        if not self.turn.acquire(asked.wait, asked.is_gone):
            raise asked.refused(_WHAT)
        try:
            with metrics.phase("feed"):
                self._catch_up(began)
                forest = self._follower.with_holds(holds)
            yield forest
        finally:
            self.turn.release()

    # -- within a turn ---------------------------------------------------------------------

    def _try_within_turn(self, question: Question, asked: Asked) -> KeptAnswer | None:
        """Return the answer if it is known or soon found, else None."""
        if question.is_hard or self._long.knows(question.key):
            _LOG.debug(
                _TO_A_CHILD, "is hard by its form" if question.is_hard else "was long before"
            )
            return None
        with self._turn_of(asked, question.holds) as forest:
            version = self._follower.version
            known = self._answers.find(version, question.key)
            if known is not None:
                return known
            clock = AttemptClock(self.turn, asked)
            budget = Budget(None, asked.memory, interrupted=clock.check)
            try:
                answer = self._worked_out(question, forest, budget)
            except (OutOfPatienceError, AnswerTooLongError) as error:
                _LOG.debug(_TO_A_CHILD, error)
                self._long.note(question.key)
                return None
            if question.is_repeatable:
                self._answers.keep(version, question.key, answer)
            if not self._is_settled:
                self._settle()
            return answer

    def _settle(self) -> None:
        """Return the memory that the first search needed to make columns for later ones.

        With a million providers that is 45 MB, in each worker of those that share the Forest.
        """
        self._is_settled = True
        allocator.give_back()

    def _worked_out(self, question: Question, forest: Forest, budget: Budget) -> KeptAnswer:
        stages = budget.stages
        try:
            drawn = question.begin(forest, budget)
            parts: list[bytes | memoryview] = []
            size = 0
            stages.enter(WRITE)
            for piece in drawn.pieces():
                parts.append(piece)
                size += len(piece)
                if size > WHOLE_ANSWER:
                    raise AnswerTooLongError("has a long answer")
            return KeptAnswer.of(parts, drawn.candidates)
        finally:
            # Those that were given up are the longest.
            metrics.tell_stages(metrics.SEARCH_SECONDS, stages)

    # -- in a child ------------------------------------------------------------------------

    def _answer_in_child(self, question: Question, asked: Asked) -> KeptAnswer | AnswerStream:
        version: int | None = None

        def start() -> Child | KeptAnswer:
            nonlocal version
            if question.holds.everywhere:
                # With very many holds the database takes a second to add up what they have. Nobody else needs to
                # wait for the Forest meanwhile.
                return self._started_reading(HoldingQuestion(question), asked)
            with self._turn_of(asked, question.holds) as forest:
                version = self._follower.version
                known = self._answers.find(version, question.key)
                return _fork(question, forest, asked) if known is None else known

        outcome = self._children.answer(asked, start)
        if isinstance(outcome, KeptAnswer) and question.is_repeatable and version is not None:
            self._answers.keep(version, question.key, outcome)
        return outcome


def _fork(question: Question | ReadingQuestion, forest: Forest, asked: Asked) -> Child:
    """Start a child.

    Raises:
        OverloadedError: if the system has no room for a child.
    """
    try:
        return Child(question, forest, asked)
    except OSError as error:
        raise OverloadedError(_PROCESSES) from error


def _pieces_of(outcome: KeptAnswer | AnswerStream) -> Iterable[Piece]:
    """Return an answer as it is given away; one that is whole counts its candidates here."""
    if isinstance(outcome, AnswerStream):
        return outcome
    metrics.CANDIDATES.inc(outcome.candidates)
    return list(outcome.pieces)
