# SPDX-License-Identifier: Apache-2.0
"""A worker's Forest: the fast lane, the slow lane, and their shared caches."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import TypeVar

from treeclaim import allocator, metrics
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.listing.texts import ListingTexts
from treeclaim.forest.table.forest import Forest
from treeclaim.gate import Gate
from treeclaim.model.changes import Cursor
from treeclaim.model.errors import OverloadedError, SearchGivenUpError, SearchTooLargeError
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
from treeclaim.replica.children.child import WHOLE_ANSWER
from treeclaim.replica.children.parent import Child
from treeclaim.replica.children.wire import packed_part
from treeclaim.replica.following import FollowedForest, Follower, Tidying
from treeclaim.replica.kept import KeptAnswer, KeptAnswers, LongQuestions, Piece
from treeclaim.replica.lanes.fast import (
    FIRST_PATIENCE,
    SECOND_PATIENCE,
    AnswerTooLongError,
    FastLaneClock,
    OutOfPatienceError,
    Slices,
    written,
)
from treeclaim.replica.lanes.slow import AnswerStream, PlanLane, SlowLane
from treeclaim.replica.turn import HeldTurn, Turn
from treeclaim.store import Store
from treeclaim.store.database.transactions import ReadTransaction

Found = TypeVar("Found")
Result = TypeVar("Result")

_SLOW_PLACES = 4
"""Questions in each part of the slow lane, waiting ones included, by default."""

_LOG = logging.getLogger(__name__)
_TO_A_CHILD = "A question goes to a child: it %s"
_WHAT = "inventory"
_PROCESSES = "processes"


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
            slow_places: Questions that may be in each part of the slow lane, waiting included.
            picture: The Forest, where another process has loaded it.
        """
        self._store = store
        self._follower = Follower(store, picture)
        self.turn = Turn()
        self._tidying = Tidying(self.turn, self._follower)
        self._second_attempts = Gate(1)
        self._slow = SlowLane(slow_places)
        self._plans = PlanLane()
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
        outcome: KeptAnswer | AnswerStream | None = self._fast(question, asked)
        if outcome is None:
            with metrics.phase("slow"):
                outcome = self._slowly(question, asked)
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
            try:
                return self._started_reading(question, asked)
            except OSError as error:
                raise OverloadedError(_PROCESSES) from error

        if question.is_plan:
            return self._plans.answer(asked, start)
        outcome = self._slow.answer(asked, start, is_very_long=False)
        if outcome is None:
            outcome = self._slow.answer(asked, start, is_very_long=True)
        if outcome is None:
            raise asked.given_up()
        return outcome

    def _started_reading(self, question: ReadingQuestion, asked: Asked) -> Child:
        """Start a child at a moment of the Forest, and feed it with what is read of that moment.

        Raises:
            OSError: if the system has no room for a child.
        """
        children: list[Child] = []

        def of_forest(forest: Forest, cursor: Cursor) -> Cursor:
            # A connection that was lost makes this run again.
            while children:
                children.pop().end()
            children.append(Child(question, forest, asked))
            return cursor

        def of_store(transaction: ReadTransaction, cursor: Cursor) -> list[bytes]:
            parts: list[bytes] = []
            size = 0
            for part in question.reads(transaction, cursor):
                asked.check()
                parts.append(packed_part(part))
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

    # -- the fast lane ---------------------------------------------------------------------

    def _fast(self, question: Question, asked: Asked) -> KeptAnswer | None:
        """Return the answer if it is known or soon found, else None."""
        if question.is_hard or self._long.knows(question.key):
            _LOG.debug(
                _TO_A_CHILD, "is hard by its form" if question.is_hard else "was long before"
            )
            return None
        reason = "is not answered within two turns"
        try:
            clock = partial(FastLaneClock, self.turn, asked, FIRST_PATIENCE)
            answer = self._attempt(question, asked, clock)
            if answer is None:
                answer = self._second_attempt(question, asked)
        except AnswerTooLongError:
            # A second attempt would become as long again.
            answer, reason = None, "has a long answer"
        if answer is None:
            _LOG.debug(_TO_A_CHILD, reason)
            self._long.note(question.key)
        return answer

    def _second_attempt(self, question: Question, asked: Asked) -> KeptAnswer | None:
        if not self._second_attempts.acquire(asked.wait, asked.is_gone):
            raise asked.refused(_WHAT)
        try:
            slices = partial(Slices, self.turn, self._follower, asked, SECOND_PATIENCE)
            return self._attempt(question, asked, slices)
        finally:
            self._second_attempts.release()

    def _attempt(
        self, question: Question, asked: Asked, start: Callable[[], FastLaneClock | Slices]
    ) -> KeptAnswer | None:
        """Return the answer, unless it takes longer than a clock allows, which starts within the turn."""
        with self._turn_of(asked, question.holds) as forest:
            version = self._follower.version
            known = self._answers.find(version, question.key)
            if known is not None:
                return known
            budget = Budget(None, asked.memory, interrupted=start().check)
            try:
                answer = self._worked_out(question, forest, budget)
            except OutOfPatienceError:
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
                    raise AnswerTooLongError
            return KeptAnswer.of(parts, drawn.candidates)
        finally:
            # Those that were given up are the longest.
            metrics.tell_stages(metrics.SEARCH_SECONDS, stages)

    # -- the slow lane ---------------------------------------------------------------------

    def _slowly(self, question: Question, asked: Asked) -> KeptAnswer | AnswerStream:
        version = 0

        def start() -> Child | KeptAnswer:
            nonlocal version
            version, started = self._started(question, asked)
            return started

        is_very_long = self._long.knows(question.key, very=True)
        try:
            outcome = self._slow.answer(asked, start, is_very_long=is_very_long)
            if outcome is None:
                _LOG.debug(
                    "A question is asked again as a very long one: there was no room for it"
                )
                self._long.note(question.key, very=True)
                outcome = self._slow.answer(asked, start, is_very_long=True)
        except (SearchGivenUpError, SearchTooLargeError):
            self._long.note(question.key, very=True)
            raise
        if outcome is None:
            raise asked.given_up()
        if isinstance(outcome, KeptAnswer) and question.is_repeatable:
            self._answers.keep(version, question.key, outcome)
        return outcome

    def _started(self, question: Question, asked: Asked) -> tuple[int, Child | KeptAnswer]:
        """Start a child at the present version of the Forest, unless the answer is known."""
        if question.holds.everywhere:
            # With very many holds the database takes a second to add up what they have, in which nobody
            # else needs to wait for the Forest.
            with suppress(OSError):
                return 0, self._started_reading(HoldingQuestion(question), asked)
        with self._turn_of(asked, question.holds) as forest:
            version = self._follower.version
            known = self._answers.find(version, question.key)
            if known is not None:
                return version, known
            try:
                return version, Child(question, forest, asked)
            except OSError:
                slices = Slices(self.turn, self._follower, asked)
                budget = Budget(None, asked.memory, interrupted=slices.check)
                return version, written(question.begin(forest, budget))


def _pieces_of(outcome: KeptAnswer | AnswerStream) -> Iterable[Piece]:
    """Return an answer as it is given away; one that is whole counts its candidates here."""
    if isinstance(outcome, AnswerStream):
        return outcome
    metrics.CANDIDATES.inc(outcome.candidates)
    return list(outcome.pieces)
