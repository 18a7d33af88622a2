# SPDX-License-Identifier: Apache-2.0
"""Group commit: claims that wait at the same time share one transaction (decision 0014).

A request that arrives while no transaction runs begins one at once. Requests that arrive during a
transaction wait and form the next group, which the first of them leads. Under load a group therefore
has as many claims as arrive during one transaction; without load each claim has its own transaction.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from time import monotonic
from typing import Generic, Protocol, TypeVar

from treeclaim.model.errors import TreeclaimError

MOST_REQUESTS = 64
"""Requests in one group, whose transaction takes about 20 ms. Half of the threads of a process can be
writes, so a larger group would rarely fill."""

MOST_CLAIMS = 4
"""Claims of a request that may join a group. A larger request, such as a migration, locks many rows, and
every other request of the group would wait for them."""

PATIENCE = 0.25
"""Seconds that a request waits for the running transaction, ten times as long as a transaction takes. A
longer one is stuck: it may wait for a lock of another client. The request then leads a second transaction
beside it, and requests that name a consumer or provider of the stuck one are not grouped."""


class Groupable(Protocol):
    """A request that may share a transaction."""

    @property
    def consumer_uuids(self) -> list[str]:
        """Return the consumers that it writes."""
        ...

    @property
    def names(self) -> set[str]:
        """Return the uuids of its consumers and of the providers that it names."""
        ...


Request = TypeVar("Request", bound=Groupable)


class _State(Enum):
    """The state of a request."""

    WAITING = "waiting"
    """The request waits for a transaction, or for the leader of its group."""
    LEADING = "leading"
    """The request leads the next group."""
    DONE = "done"
    """The request was committed or refused."""
    ALONE = "alone"
    """The group failed; the request runs alone."""


@dataclass(slots=True, eq=False)
class _Member(Generic[Request]):
    """A request and its state.

    Attributes:
        request: The request.
        deadline: On the monotonic clock; no statement begins later.
        state: Its state.
        refusal: The error of a refused request.
        decided: Released when the state is decided for the waiting thread: LEADING, DONE or ALONE.
    """

    request: Request
    deadline: float
    state: _State = _State.WAITING
    refusal: TreeclaimError | None = None
    decided: threading.Lock = field(default_factory=threading.Lock)

    def decide(self, state: _State, refusal: TreeclaimError | None = None) -> None:
        """Set the state and wake the waiting thread; the leader does not wait."""
        self.state, self.refusal = state, refusal
        self.decided.release()


class Groups(Generic[Request]):
    """The requests of one process that wait for a transaction; thread-safe.

    Args:
        run_group: Writes a group of at least two by a deadline, the leader first; returns the refusal of each, None
            for a written request. It returns None if the group failed, and each request must run alone.
        run_alone: Writes one request by a deadline; raises its refusal.
    """

    def __init__(
        self,
        run_group: Callable[[Sequence[Request], float], Sequence[TreeclaimError | None] | None],
        run_alone: Callable[[Request, float], None],
    ) -> None:
        self._run_group = run_group
        self._run_alone = run_alone
        self._lock = threading.Lock()
        self._waiting: deque[_Member[Request]] = deque()
        self._leaders = 0
        self._running: dict[_Member[Request], tuple[float, set[str]]] = {}

    def submit(self, request: Request, deadline: float) -> None:
        """Write a request, in a group or alone; return once it is committed.

        Args:
            request: The request.
            deadline: On the monotonic clock; no statement of its group begins later.

        Raises:
            TreeclaimError: if the request is refused, or the database fails.
        """
        member = _Member(request, deadline)
        if len(request.consumer_uuids) > MOST_CLAIMS:
            self._alone(member)
            return
        self._enqueue(member)
        if member.state is not _State.LEADING:
            self._await_decision(member)
        if member.state is _State.LEADING:
            self._lead(member)
        if member.state is _State.ALONE:
            self._alone(member)
        elif member.refusal is not None:
            # The traceback of the error refers to this frame, which must not refer to the error.
            refusal, member.refusal = member.refusal, None
            try:
                raise refusal
            finally:
                del refusal

    def _enqueue(self, member: _Member[Request]) -> None:
        """Queue a member, or make it the leader if no request leads."""
        member.decided.acquire()
        with self._lock:
            if self._leaders:
                self._waiting.append(member)
            else:
                self._leaders = 1
                member.state = _State.LEADING

    def _await_decision(self, member: _Member[Request]) -> None:
        """Wait for a decision; lead a second transaction if no group includes the member in time.

        The leader of a group decides within the timeouts of its transaction.
        """
        if member.decided.acquire(timeout=PATIENCE):
            return
        with self._lock:
            if member in self._waiting:
                self._waiting.remove(member)
                self._leaders += 1
                member.state = _State.LEADING
                return
        member.decided.acquire()

    def _lead(self, leader: _Member[Request]) -> None:
        """Run a group, then start the next one.

        Raises:
            TreeclaimError: the refusal of the leader, if its group has no other member.
        """
        members = self._select_members(leader)
        state = _State.ALONE
        refusals: list[TreeclaimError | None] = [None] * (1 + len(members))
        try:
            if members:
                group = [leader, *members]
                with self._track(group):
                    outcome = self._run_group(
                        [member.request for member in group],
                        min(member.deadline for member in group),
                    )
                if outcome is not None:
                    state, refusals = _State.DONE, [*outcome]
            else:
                self._alone(leader)
                state = _State.DONE
        finally:
            # After an unexpected error of the leader, the members run alone: the failure is not theirs.
            leader.state, leader.refusal = state, refusals[0]
            for member, refusal in zip(members, refusals[1:], strict=True):
                member.decide(state, refusal)
            self._hand_over_leadership()

    def _alone(self, member: _Member[Request]) -> None:
        with self._track([member]):
            self._run_alone(member.request, member.deadline)

    @contextmanager
    def _track(self, group: Sequence[_Member[Request]]) -> Iterator[None]:
        """Record the names in a transaction while it runs."""
        names = set[str]().union(*(member.request.names for member in group))
        with self._lock:
            self._running[group[0]] = (monotonic(), names)
        try:
            yield
        finally:
            with self._lock:
                del self._running[group[0]]

    def _stuck_names(self) -> set[str]:
        """Return the names in transactions that run for too long; the caller holds the lock."""
        before = monotonic() - PATIENCE
        stuck = (names for began, names in self._running.values() if began < before)
        return set[str]().union(*stuck)

    def _select_members(self, leader: _Member[Request]) -> list[_Member[Request]]:
        """Remove from the queue, in order, the members that share no consumer with the group.

        A member that names an object of a stuck transaction stays: it would delay the group.
        """
        chosen_members: list[_Member[Request]] = []
        uuids = set(leader.request.consumer_uuids)
        with self._lock:
            stuck = self._stuck_names()
            if stuck and not stuck.isdisjoint(leader.request.names):
                return []
            still_waiting: deque[_Member[Request]] = deque()
            for member in self._waiting:
                consumer_uuids = member.request.consumer_uuids
                # Requests of one consumer are written in the order in which they arrived.
                fits = len(chosen_members) + 1 < MOST_REQUESTS and uuids.isdisjoint(consumer_uuids)
                if stuck and not stuck.isdisjoint(member.request.names):
                    fits = False
                uuids.update(consumer_uuids)
                if fits:
                    chosen_members.append(member)
                else:
                    still_waiting.append(member)
            self._waiting = still_waiting
        return chosen_members

    def _hand_over_leadership(self) -> None:
        """Make the first waiting member the leader, if a member waits."""
        with self._lock:
            if not self._waiting:
                self._leaders -= 1
                return
            following = self._waiting.popleft()
            following.decide(_State.LEADING)
