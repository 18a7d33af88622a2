# SPDX-License-Identifier: Apache-2.0
"""Group commit: claims that wait at the same time share one transaction (decision 0014).

A request that arrives while no transaction runs begins one at once. Requests that arrive during a transaction
wait and form the next group, led by the first of them. A group therefore grows with the load; without load, each
claim has its own transaction.
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
"""Maximum requests in a group, with a transaction of about 20 ms. Half of the threads of a process can be writes, so
a larger group would rarely fill."""

MOST_CLAIMS = 4
"""Maximum claims of a request in a group. A larger request, such as a migration, locks many rows, and all other
requests of the group would wait for them."""

PATIENCE = 0.25
"""Seconds that a request waits for the running transaction, ten times the usual duration. A longer transaction is
stuck: it may wait for a lock of another client. The request then leads a second transaction, and requests that
name a consumer or provider of the stuck one join no group."""


class GroupRequest(Protocol):
    """A request that may share a transaction."""

    @property
    def consumer_uuids(self) -> list[str]:
        """Return the UUIDs of the written consumers."""
        ...

    @property
    def names(self) -> set[str]:
        """Return the UUIDs of the consumers and the named objects."""
        ...


Request = TypeVar("Request", bound=GroupRequest)


class _State(Enum):
    WAITING = "waiting"
    """Waits for a transaction, or for the leader of its group."""
    LEADING = "leading"
    """Leads the next group."""
    DONE = "done"
    """Committed or refused."""
    ALONE = "alone"
    """Must run alone, because its group failed."""


@dataclass(slots=True, eq=False)
class _Member(Generic[Request]):
    request: Request
    deadline: float
    state: _State = _State.WAITING
    refusal: TreeclaimError | None = None
    decision_lock: threading.Lock = field(default_factory=threading.Lock)
    """Released when a leader has set the state to LEADING, DONE or ALONE."""

    def decide(self, state: _State, refusal: TreeclaimError | None = None) -> None:
        """Set the state, and wake the waiting thread."""
        self.state, self.refusal = state, refusal
        self.decision_lock.release()


class Groups(Generic[Request]):
    """The requests of one process that wait for a transaction; thread-safe.

    Args:
        write_group: Writes at least two requests by a deadline, that of the leader first. Returns the refusal of
            each request, None for a written one; or None if each request must run alone.
        write_alone: Writes one request by a deadline, or raises its refusal.
    """

    def __init__(
        self,
        write_group: Callable[[Sequence[Request], float], Sequence[TreeclaimError | None] | None],
        write_alone: Callable[[Request, float], None],
    ) -> None:
        self._write_group = write_group
        self._write_alone = write_alone
        self._lock = threading.Lock()
        self._waiting_members: deque[_Member[Request]] = deque()
        self._leaders = 0
        self._running_groups: dict[_Member[Request], tuple[float, set[str]]] = {}

    def submit(self, request: Request, deadline: float) -> None:
        """Write a request, in a group or alone; return after its commit, or raise its refusal.

        No statement of its group begins after the deadline, on the monotonic clock.
        """
        member = _Member(request, deadline)
        if len(request.consumer_uuids) > MOST_CLAIMS:
            self._run_alone(member)
            return
        self._enqueue(member)
        if member.state is not _State.LEADING:
            self._await_decision(member)
        if member.state is _State.LEADING:
            self._lead(member)
        if member.state is _State.ALONE:
            self._run_alone(member)
        elif member.refusal is not None:
            # The traceback of the error refers to this frame, which must not refer to the error.
            refusal, member.refusal = member.refusal, None
            try:
                raise refusal
            finally:
                del refusal

    def _enqueue(self, member: _Member[Request]) -> None:
        member.decision_lock.acquire()
        with self._lock:
            if self._leaders:
                self._waiting_members.append(member)
            else:
                self._leaders = 1
                member.state = _State.LEADING

    def _await_decision(self, member: _Member[Request]) -> None:
        """Wait for the decision of a leader; lead a second transaction if no group includes the member in time.

        A leader decides within the timeouts of its transaction.
        """
        if member.decision_lock.acquire(timeout=PATIENCE):
            return
        with self._lock:
            if member in self._waiting_members:
                self._waiting_members.remove(member)
                self._leaders += 1
                member.state = _State.LEADING
                return
        member.decision_lock.acquire()

    def _lead(self, leader: _Member[Request]) -> None:
        """Run a group, then hand over the leadership; raise the refusal of a leader without a group."""
        members = self._select_members(leader)
        state = _State.ALONE
        refusals: list[TreeclaimError | None] = [None] * (1 + len(members))
        try:
            if members:
                group = [leader, *members]
                with self._track(group):
                    outcome = self._write_group(
                        [member.request for member in group],
                        min(member.deadline for member in group),
                    )
                if outcome is not None:
                    state, refusals = _State.DONE, [*outcome]
            else:
                self._run_alone(leader)
                state = _State.DONE
        finally:
            # After an unexpected error of the leader, the other members run alone.
            leader.state, leader.refusal = state, refusals[0]
            for member, refusal in zip(members, refusals[1:], strict=True):
                member.decide(state, refusal)
            self._hand_over_leadership()

    def _run_alone(self, member: _Member[Request]) -> None:
        with self._track([member]):
            self._write_alone(member.request, member.deadline)

    @contextmanager
    def _track(self, group: Sequence[_Member[Request]]) -> Iterator[None]:
        """Record the names of a transaction while it runs."""
        names = set[str]().union(*(member.request.names for member in group))
        with self._lock:
            self._running_groups[group[0]] = (monotonic(), names)
        try:
            yield
        finally:
            with self._lock:
                del self._running_groups[group[0]]

    def _find_stuck_names(self) -> set[str]:
        """Return the names of stuck transactions; the caller holds the lock."""
        cutoff = monotonic() - PATIENCE
        stuck_names = (
            names for started_at, names in self._running_groups.values() if started_at < cutoff
        )
        return set[str]().union(*stuck_names)

    def _select_members(self, leader: _Member[Request]) -> list[_Member[Request]]:
        """Remove the members of the leader's group from the queue, in order.

        A member that shares a consumer with the group or an earlier member stays; so does one that names an object
        of a stuck transaction, which would delay the group.
        """
        chosen_members: list[_Member[Request]] = []
        uuids = set(leader.request.consumer_uuids)
        with self._lock:
            stuck_names = self._find_stuck_names()
            if stuck_names and not stuck_names.isdisjoint(leader.request.names):
                return []
            remaining_members: deque[_Member[Request]] = deque()
            for member in self._waiting_members:
                consumer_uuids = member.request.consumer_uuids
                # Requests of one consumer are written in the order in which they arrived.
                can_join = len(chosen_members) + 1 < MOST_REQUESTS and uuids.isdisjoint(
                    consumer_uuids
                )
                if stuck_names and not stuck_names.isdisjoint(member.request.names):
                    can_join = False
                uuids.update(consumer_uuids)
                if can_join:
                    chosen_members.append(member)
                else:
                    remaining_members.append(member)
            self._waiting_members = remaining_members
        return chosen_members

    def _hand_over_leadership(self) -> None:
        with self._lock:
            if self._waiting_members:
                self._waiting_members.popleft().decide(_State.LEADING)
            else:
                self._leaders -= 1
