# SPDX-License-Identifier: Apache-2.0
"""Group commit: claims that wait at the same time share one transaction (decision 0014).

Nobody waits for a group to fill. A request that finds no transaction under way leads one at once; one that
comes meanwhile joins the next group, and the first of them leads it. So under load a group has as
many claims as arrive during one transaction, and without load each claim is alone.
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
"""Requests in one group. Its transaction takes some 20 ms then; half of the threads of a process
can be writes, so a larger one would rarely fill."""

MOST_CLAIMS = 4
"""Claims of a request that may join a group. Larger ones, as migrations send them, lock much, and
each of the others would wait for all of it."""

PATIENCE = 0.25
"""Seconds that a request waits for the transaction under way. One takes a tenth of that, so a
longer one is stuck: it may wait for a lock of somebody else. The request then leads a transaction
beside it, and nothing that the stuck one names is written in a group."""


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


class NotWrittenError(TreeclaimError):
    """The group of a request has failed, for no fault of the request's own perhaps."""


class MemberState(Enum):
    """The state of a request that waits for a transaction."""

    WAITING = "waiting"
    TAKEN = "taken"
    """The request is in a group; its leader will decide."""
    LEADING = "leading"
    """The request leads the next group."""
    DONE = "done"
    """The request was committed or refused."""
    ALONE = "alone"
    """Its group failed; it runs by itself."""


@dataclass(slots=True, eq=False)
class Member(Generic[Request]):
    """A request and its state.

    Attributes:
        request: The request.
        deadline: On the monotonic clock; no statement begins later.
        state: Its state.
        refusal: Why it was refused, if it was.
        decided: Released when its state becomes final for its thread: LEADING, DONE or ALONE.
    """

    request: Request
    deadline: float
    state: MemberState = MemberState.WAITING
    refusal: TreeclaimError | None = None
    decided: threading.Lock = field(default_factory=threading.Lock)

    def decide(self, state: MemberState, refusal: TreeclaimError | None = None) -> None:
        """Decide, and wake the thread that waits; the thread that leads does not."""
        self.state, self.refusal = state, refusal
        self.decided.release()


class Groups(Generic[Request]):
    """The requests of one process that wait for a transaction; thread-safe.

    Args:
        run_group: Writes a group of at least two, the leader first, and decides the states of all.
        run_alone: Writes the request of one member; raises its refusal.
    """

    def __init__(
        self,
        run_group: Callable[[Sequence[Member[Request]]], None],
        run_alone: Callable[[Member[Request]], None],
    ) -> None:
        self._run_group = run_group
        self._run_alone = run_alone
        self._lock = threading.Lock()
        self._waiting: deque[Member[Request]] = deque()
        self._leaders = 0
        self._running: dict[Member[Request], tuple[float, set[str]]] = {}

    def submit(self, request: Request, deadline: float) -> None:
        """Write a request, in a group or alone; return once it is committed.

        Args:
            request: The request.
            deadline: On the monotonic clock; no statement of its group begins later.

        Raises:
            TreeclaimError: if it is refused, or the database fails.
        """
        if len(request.consumer_uuids) > MOST_CLAIMS:
            self._alone(Member(request, deadline))
            return
        (member,) = self.submit_all([request], deadline)
        self._finish(member)

    def submit_all(self, requests: Sequence[Request], deadline: float) -> list[Member[Request]]:
        """Write the requests of several clients, which came here together, each by itself.

        Args:
            requests: Small ones, of different consumers.
            deadline: As for `submit`.

        Returns:
            What became of each. Nothing was written for those whose state is ALONE: who waits for
            one of them is not to wait for the others.
        """
        members = [Member(request, deadline) for request in requests]
        self._enqueue(members)
        end = monotonic() + PATIENCE
        unexpected: BaseException | None = None
        for member in members:
            try:
                if member.state is not MemberState.LEADING:
                    self._await_decision(member, max(end - monotonic(), 0.0))
                if member.state is MemberState.LEADING:
                    self._lead(member, may_run_alone=len(members) == 1)
            except TreeclaimError as error:
                member.refusal = error
            except BaseException as error:  # noqa: BLE001 - whoever is to lead must not be lost
                unexpected = error
        if unexpected is not None:
            raise unexpected
        return members

    def _enqueue(self, members: Sequence[Member[Request]]) -> None:
        """Let the first of some members lead if nobody does; let the others wait."""
        for member in members:
            member.decided.acquire()
        with self._lock:
            leads = self._leaders == 0
            if leads:
                self._leaders = 1
                members[0].state = MemberState.LEADING
            self._waiting.extend(members[1:] if leads else members)

    def _await_decision(self, member: Member[Request], seconds: float) -> None:
        """Wait for a decision; lead beside others if no group takes the member in time.

        Once it is in a group its leader decides, within the timeouts of its transaction.
        """
        if member.decided.acquire(timeout=seconds):
            return
        with self._lock:
            if member.state is MemberState.WAITING:
                self._waiting.remove(member)
                self._leaders += 1
                member.state = MemberState.LEADING
                return
        member.decided.acquire()

    def _lead(self, leader: Member[Request], *, may_run_alone: bool) -> None:
        """Run a group; then let the next one begin.

        Raises:
            TreeclaimError: the leader's own refusal, if it was alone.
        """
        group = [leader, *self._take(leader)]
        try:
            if len(group) > 1:
                with self._track(group):
                    self._run_group(group)
            elif may_run_alone:
                self._alone(leader)
            else:
                leader.state = MemberState.ALONE
        finally:
            self._hand_over_leadership()
            for member in group[1:]:
                if member.state is MemberState.TAKEN:
                    # Whatever went wrong with the leader, the others do not share it.
                    member.decide(MemberState.ALONE)

    def _finish(self, member: Member[Request]) -> None:
        """Do what a member's state says, in its own thread.

        Raises:
            TreeclaimError: if it is refused, or the database fails.
        """
        if member.state is MemberState.ALONE:
            self._alone(member)
        elif member.refusal is not None:
            # What is raised leads to this frame, which must not lead to it.
            refusal, member.refusal = member.refusal, None
            try:
                raise refusal
            finally:
                del refusal

    def _alone(self, member: Member[Request]) -> None:
        with self._track([member]):
            self._run_alone(member)

    @contextmanager
    def _track(self, group: Sequence[Member[Request]]) -> Iterator[None]:
        """Record the names in a transaction while it is under way."""
        names = set[str]().union(*(member.request.names for member in group))
        with self._lock:
            self._running[group[0]] = (monotonic(), names)
        try:
            yield
        finally:
            with self._lock:
                del self._running[group[0]]

    def _stuck_names(self) -> set[str]:
        """Return the names in transactions that take too long; the lock is held."""
        before = monotonic() - PATIENCE
        stuck = (names for began, names in self._running.values() if began < before)
        return set[str]().union(*stuck)

    def _take(self, leader: Member[Request]) -> list[Member[Request]]:
        """Take waiting members, in order, that share no consumer with the group.

        What a stuck transaction names stays out of groups: it would make the others wait.
        """
        chosen_members: list[Member[Request]] = []
        uuids = set(leader.request.consumer_uuids)
        with self._lock:
            stuck = self._stuck_names()
            if stuck and not stuck.isdisjoint(leader.request.names):
                return []
            still_waiting: deque[Member[Request]] = deque()
            for member in self._waiting:
                consumer_uuids = member.request.consumer_uuids
                # A consumer whose earlier request waits must not be written by a later one first.
                fits = len(chosen_members) + 1 < MOST_REQUESTS and uuids.isdisjoint(consumer_uuids)
                if stuck and not stuck.isdisjoint(member.request.names):
                    fits = False
                uuids.update(consumer_uuids)
                if fits:
                    member.state = MemberState.TAKEN
                    chosen_members.append(member)
                else:
                    still_waiting.append(member)
            self._waiting = still_waiting
        return chosen_members

    def _hand_over_leadership(self) -> None:
        """Let the first waiting member lead, if any waits."""
        with self._lock:
            if not self._waiting:
                self._leaders -= 1
                return
            following = self._waiting.popleft()
            following.decide(MemberState.LEADING)
