# SPDX-License-Identifier: Apache-2.0
"""Placements that wait at the same time are found in one picture and written in one transaction.

A call that places a single consumer is a search and a claim. Claims that wait at the same time share
a transaction (decision 0014), so that each costs a fraction of one; here the searches before them are
shared too. Nobody waits for a batch to fill: a call that finds none under way leads one at once, and calls
that come meanwhile join the next.

The picture shows everything that was committed before the batch began, and each consumer is placed
beside those before it. So what is written is what calls one after the other would have written. A call that
finds nothing is not refused here: the room may have been taken in the picture for one that is not
written after all. Nor is one whose consumer holds something already, or that another process has overtaken.
These, and long ones, are answered like single calls.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from time import thread_time

from treeclaim import metrics
from treeclaim.forest.placing.series import OutOfTimeError, Series
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import (
    ResourceClassNotFoundError,
    SearchTooLargeError,
    TraitsNotFoundError,
    TreeclaimError,
)
from treeclaim.model.extension.placing import Placement, PlacingRequest, claim_of
from treeclaim.model.timing import SEARCH, WAIT, Stages
from treeclaim.replica.kept import SlowQuestions
from treeclaim.replica.question import DEFAULT_MEMORY
from treeclaim.replica.questions import are_hard
from treeclaim.replica.replica import Replica
from treeclaim.replica.turn import PATIENCE
from treeclaim.store import Store
from treeclaim.store.operations.allocations.placements import REFUSALS
from treeclaim.store.operations.allocations.requests import PlacedMeanwhileError
from treeclaim.store.reading.holders import find_holders
from treeclaim.store.writes.groups import Groups, Member, MemberState, NotWrittenError

_LONGEST_SEARCH = 0.015
"""Seconds of processor time after which a placement is given up: nobody else has a turn at the Forest
meanwhile."""

_TRY_ALONE = (PlacedMeanwhileError, NotWrittenError, *REFUSALS)
"""Refusals after which a call is tried again on its own."""


@dataclass(slots=True, eq=False)
class _WaitingCall:
    """A call that waits for its place.

    Attributes:
        request: What its single consumer wants.
        placement: Where that is now, None if it is nowhere.
        stages: Counts how long each part takes.
    """

    request: PlacingRequest
    placement: Placement | None = None
    stages: Stages = field(default_factory=partial(Stages, WAIT))

    @property
    def consumer_uuids(self) -> list[str]:
        """The consumers that it writes."""
        return list(self.request.consumers)

    @property
    def names(self) -> set[str]:
        """The uuid of its consumer: it names no provider yet."""
        return set(self.request.consumers)

    @property
    def key(self) -> bytes:
        """Its key among questions that take long."""
        return b"%d" % hash(self.request.alternatives)


class Batches:
    """Places single consumers, simultaneous ones together; thread-safe."""

    def __init__(self, store: Store, replica: Replica) -> None:
        self._store = store
        self._replica = replica
        self._series: Series | None = None
        self._slow = SlowQuestions()
        self._groups: Groups[_WaitingCall] = Groups(self._run_group, self._run_alone)

    def place(self, request: PlacingRequest) -> Placement | None:
        """Find a place for a new consumer, and claim it.

        Args:
            request: The request of a call that has one consumer and no rules.

        Returns:
            Where it is now; None if nothing was written, whatever the reason: the call is then to
            be answered as if it had not been here.

        Raises:
            StoreUnavailableError: if the database does not answer; the outcome may be unknown.
            OverloadedError: if the Forest was not free in time.
        """
        waiting_call = _WaitingCall(request)
        is_held = bool(request.from_holds) or request.hold is not None
        if is_held or are_hard(request.alternatives) or self._slow.has(waiting_call.key):
            return None
        try:
            self._groups.submit(waiting_call, float("inf"))
        finally:
            metrics.tell_stages(metrics.CLAIM_SECONDS, waiting_call.stages)
        return waiting_call.placement

    def _run_alone(self, member: Member[_WaitingCall]) -> None:
        (refusal,) = self._place_calls([member.request])
        if refusal is not None:
            raise refusal

    def _run_group(self, group: Sequence[Member[_WaitingCall]]) -> None:
        refusals: Sequence[TreeclaimError | None]
        try:
            refusals = self._place_calls([member.request for member in group])
        except TreeclaimError as error:
            # The database, or the Forest, cannot serve any of them.
            refusals = [error] * len(group)
        leader, *followers = group
        leader.state, leader.refusal = MemberState.DONE, refusals[0]
        for member, refusal in zip(followers, refusals[1:], strict=True):
            member.decide(MemberState.DONE, refusal)

    def _place_calls(self, calls: Sequence[_WaitingCall]) -> list[TreeclaimError | None]:
        """Place some consumers; return what to raise for each."""
        failures: dict[_WaitingCall, TreeclaimError] = {}
        waiting = deque(self._calls_of_new_consumers(calls))
        while waiting:
            all_stages = [call.stages for call in waiting]
            _enter_stage(all_stages, SEARCH)
            claims = self._find_places(waiting)
            _enter_stage(all_stages, WAIT)
            if not claims:
                continue
            refusals = self._store.place_each(
                [claim for _, claim in claims], [call.stages for call, _ in claims]
            )
            for (call, _), refusal in zip(claims, refusals, strict=True):
                if refusal is not None:
                    call.placement = None
                    if not isinstance(refusal, _TRY_ALONE):
                        failures[call] = refusal
        return [failures.get(call) for call in calls]

    def _calls_of_new_consumers(self, calls: Sequence[_WaitingCall]) -> Sequence[_WaitingCall]:
        """Return the calls whose consumers hold nothing: what others hold counts in the Forest already."""
        if len(calls) == 1:
            return calls
        uuids = sorted(uuid for call in calls for uuid in call.consumer_uuids)
        holders = self._store.read(find_holders, uuids)
        return [call for call in calls if holders.keys().isdisjoint(call.consumer_uuids)]

    def _find_places(
        self, waiting: deque[_WaitingCall]
    ) -> list[tuple[_WaitingCall, ConsumerClaim]]:
        """Take calls from a queue while there is time; return the claims of those that found a place."""
        claims: list[tuple[_WaitingCall, ConsumerClaim]] = []
        with self._replica.current() as forest:
            series = self._series
            if series is None or not series.may_follow(forest):
                series = Series(forest, DEFAULT_MEMORY)
            # A series that is given up half-way cannot be kept.
            self._series = None
            begin = thread_time()
            # The first may begin late: what a search begins with serves the others too.
            while waiting and (not claims or thread_time() < begin + PATIENCE):
                call = waiting.popleft()
                try:
                    call.placement = series.place(call.request, begin + _LONGEST_SEARCH)
                except (TraitsNotFoundError, ResourceClassNotFoundError):
                    # The path of single calls says where in the call that name is.
                    continue
                except (OutOfTimeError, SearchTooLargeError):
                    self._slow.note(call.key)
                    return claims
                if call.placement is not None:
                    claims.append((call, claim_of(call.request, call.placement)))
            self._series = series
        return claims


def _enter_stage(all_stages: Sequence[Stages], stage: str) -> None:
    for stages in all_stages:
        stages.enter(stage)
