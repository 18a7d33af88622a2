# SPDX-License-Identifier: Apache-2.0
"""Batches concurrent calls that place single consumers: one state of the Forest, one transaction.

Each call is a search and a claim. Concurrent claims share a transaction (decision 0014), and a batch also
shares the searches. No call waits for a batch to fill: a call without a running batch leads one at once,
and calls that arrive during a batch form the next one.

The Forest shows every commit before the batch, and each consumer is placed after those before it. The
result therefore equals that of sequential calls.

A batch refuses no call. It leaves a call to the path of single calls in these cases:

- The search finds no place: the room may belong to a consumer of the batch that is not written in the end.
- The consumer already has allocations.
- Another process has claimed the room first.
- The search takes too long.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from time import thread_time

from treeclaim import metrics
from treeclaim.forest.placing.series import OutOfTimeError, PlacementSeries
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import (
    ResourceClassNotFoundError,
    SearchTooLargeError,
    TraitsNotFoundError,
    TreeclaimError,
)
from treeclaim.model.extension.placing import Placement, PlacingRequest, make_claim
from treeclaim.model.timing import SEARCH, WAIT, Stages
from treeclaim.replica.answer_cache import SlowQuestions
from treeclaim.replica.question import DEFAULT_MEMORY
from treeclaim.replica.questions import is_any_hard
from treeclaim.replica.replica import Replica
from treeclaim.replica.turn import PATIENCE
from treeclaim.store import Store
from treeclaim.store.operations.allocations.requests import (
    STALE_PLACE_ERRORS,
    PlacedMeanwhileError,
)
from treeclaim.store.reading.holders import find_holders
from treeclaim.store.store import NotWrittenError
from treeclaim.store.writes.groups import Groups

_LONGEST_SEARCH = 0.015
"""Seconds of CPU time after which the search of a batch stops, because it excludes all other threads from the
Forest."""

_RETRIED_ALONE = (PlacedMeanwhileError, NotWrittenError, *STALE_PLACE_ERRORS)
"""Refusals that the path of single calls retries."""


@dataclass(slots=True, eq=False)
class _WaitingCall:
    """A call that waits for its placement; the request has a single consumer."""

    request: PlacingRequest
    placement: Placement | None = None
    stages: Stages = field(default_factory=partial(Stages, WAIT))

    @property
    def consumer_uuids(self) -> list[str]:
        """The UUIDs of the consumers to write."""
        return list(self.request.consumers)

    @property
    def names(self) -> set[str]:
        """The UUID of its consumer, which identifies the call before it has a provider."""
        return set(self.request.consumers)

    @property
    def key(self) -> bytes:
        """Its key in `SlowQuestions`."""
        return b"%d" % hash(self.request.alternatives)


class Batches:
    """Places single consumers, concurrent calls together; thread-safe."""

    def __init__(self, store: Store, replica: Replica) -> None:
        self._store = store
        self._replica = replica
        self._series: PlacementSeries | None = None
        self._slow = SlowQuestions()
        self._groups: Groups[_WaitingCall] = Groups(self._place_group, self._place_alone)

    def place(self, request: PlacingRequest) -> Placement | None:
        """Place and claim one new consumer without rules.

        Returns None if nothing was written, and the path of single calls must answer.

        Raises:
            StoreUnavailableError: if the database does not respond; the outcome may be unknown.
            OverloadedError: if waiting for the turn at the Forest timed out.
        """
        waiting_call = _WaitingCall(request)
        is_held = bool(request.from_holds) or request.hold is not None
        if is_held or is_any_hard(request.alternatives) or self._slow.has(waiting_call.key):
            return None
        try:
            self._groups.submit(waiting_call, float("inf"))
        finally:
            metrics.observe_stages(metrics.CLAIM_SECONDS, waiting_call.stages)
        return waiting_call.placement

    def _place_group(
        self, calls: Sequence[_WaitingCall], _deadline: float
    ) -> Sequence[TreeclaimError | None]:
        try:
            return self._place_calls(calls)
        except TreeclaimError as error:
            # The database or the Forest failed, for all calls.
            return [error.with_traceback(None)] * len(calls)

    def _place_alone(self, call: _WaitingCall, _deadline: float) -> None:
        (refusal,) = self._place_calls([call])
        if refusal is not None:
            raise refusal

    def _place_calls(self, calls: Sequence[_WaitingCall]) -> list[TreeclaimError | None]:
        """Place consumers; return the error of each call, None without one."""
        failures: dict[_WaitingCall, TreeclaimError] = {}
        waiting_calls = deque(self._calls_of_new_consumers(calls))
        while waiting_calls:
            all_stages = [call.stages for call in waiting_calls]
            _enter_stage(all_stages, SEARCH)
            claims = self._search(waiting_calls)
            _enter_stage(all_stages, WAIT)
            if not claims:
                continue
            refusals = self._store.place_each(
                [claim for _, claim in claims], [call.stages for call, _ in claims]
            )
            for (call, _), refusal in zip(claims, refusals, strict=True):
                if refusal is not None:
                    call.placement = None
                    if not isinstance(refusal, _RETRIED_ALONE):
                        failures[call] = refusal
        return [failures.get(call) for call in calls]

    def _calls_of_new_consumers(self, calls: Sequence[_WaitingCall]) -> Sequence[_WaitingCall]:
        """Return the calls for consumers without allocations; existing ones would count as used."""
        if len(calls) == 1:
            return calls
        uuids = sorted(uuid for call in calls for uuid in call.consumer_uuids)
        holders = self._store.read(find_holders, uuids)
        return [call for call in calls if holders.keys().isdisjoint(call.consumer_uuids)]

    def _search(
        self, waiting_calls: deque[_WaitingCall]
    ) -> list[tuple[_WaitingCall, ConsumerClaim]]:
        """Place queued calls within the time limit; return the placed calls and their claims."""
        claims: list[tuple[_WaitingCall, ConsumerClaim]] = []
        with self._replica.borrow_forest() as forest:
            series = self._series
            if series is None or not series.may_follow(forest):
                series = PlacementSeries(forest, DEFAULT_MEMORY)
            # An interrupted series must not be reused.
            self._series = None
            begin = thread_time()
            # The first search may exceed the limit, because its preparation also serves later searches.
            while waiting_calls and (not claims or thread_time() < begin + PATIENCE):
                call = waiting_calls.popleft()
                try:
                    call.placement = series.place(call.request, begin + _LONGEST_SEARCH)
                except (TraitsNotFoundError, ResourceClassNotFoundError):
                    # The path of single calls reports the position of the name in the call.
                    continue
                except (OutOfTimeError, SearchTooLargeError):
                    self._slow.note(call.key)
                    return claims
                if call.placement is not None:
                    claims.append((call, make_claim(call.request, call.placement)))
            self._series = series
        return claims


def _enter_stage(all_stages: Sequence[Stages], stage: str) -> None:
    for stages in all_stages:
        stages.enter(stage)
