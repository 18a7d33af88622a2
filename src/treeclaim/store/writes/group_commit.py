# SPDX-License-Identifier: Apache-2.0
"""Writes a group of claims in one transaction, or divides it (decision 0014)."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from treeclaim import metrics
from treeclaim.model.errors import TreeclaimError
from treeclaim.store.database.failures import (
    TRANSACTION_FAILURES,
    Failure,
    Outages,
    classify_failure,
)
from treeclaim.store.database.systems import DatabaseSettings
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations.allocations import claims
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.writes.commit import Committer
from treeclaim.store.writes.groups import Member, MemberState
from treeclaim.store.writes.retries import RetryBudget, run_with_retries

_ATTEMPTS = 3
"""Attempts of a group before it is divided: single claims lock fewer rows."""

_LOCK_SECONDS = 1
"""Lock timeout of a group, in seconds. A queue for a shared pool lasts some hundredths of a second; after
a longer wait the group is divided, so that only the claims that need the lock keep waiting."""

_SHARED_FAILURES = {Failure.SILENT, Failure.POOL_TIMEOUT, Failure.UNKNOWN_OUTCOME}
"""Failures of all members. After a timeout, each member alone would wait as long again."""


_CONNECTIONS = 2
"""Open connections for groups: one group runs at a time, and a second one while the first is stuck."""


def group_settings(settings: DatabaseSettings) -> DatabaseSettings:
    """Return the settings of the connections that write groups: few, with a short lock timeout."""
    timeouts = replace(settings.timeouts, lock=min(settings.timeouts.lock, _LOCK_SECONDS))
    return replace(settings, timeouts=timeouts, max_pool_size=_CONNECTIONS)


class GroupCommit:
    """Writes groups; thread-safe.

    Args:
        committer: Commits on connections with `group_settings`.
        outages: Makes the errors of clients.
        write_first: Commits the prerequisite of a group.
        closing: Ends pauses.
    """

    def __init__(
        self,
        committer: Committer,
        outages: Outages,
        write_first: Callable[[Callable[[WriteTransaction], None]], None],
        closing: threading.Event,
    ) -> None:
        self._committer = committer
        self._outages = outages
        self._write_first = write_first
        self._closing = closing

    def run(self, group: Sequence[Member[ClaimRequest]]) -> None:
        """Write a group, and decide the states of its members; the first one is the leader.

        After a conflict the whole group runs again. Any other failure may be the fault of one
        member, so each member then runs alone, within its own deadline.
        """
        metrics.CLAIM_GROUPS.observe(len(group))
        try:
            refusals = self._commit(group)
        except TRANSACTION_FAILURES as error:
            if classify_failure(error) not in _SHARED_FAILURES:
                _divide(group)
                return
            refusals = [self._outages.client_error(error) for _ in group]
        except TreeclaimError:
            _divide(group)
            return
        leader, *followers = group
        leader.state, leader.refusal = MemberState.DONE, refusals[0]
        for member, refusal in zip(followers, refusals[1:], strict=True):
            member.request.stages.share(leader.request.stages, is_reported=True)
            member.decide(MemberState.DONE, refusal)

    def _commit(self, group: Sequence[Member[ClaimRequest]]) -> Sequence[TreeclaimError | None]:
        """Commit a group; return the refusals of its members.

        Raises:
            ConcurrentChangeError: if all attempts failed by conflicts.
            SQLAlchemyError, DeadlineError, UnknownOutcomeError: as `Committer.run`.
        """
        deadline = min(member.deadline for member in group)
        stages = group[0].request.stages
        requests = [member.request for member in group]
        operation = partial(claims.write_group, requests=requests)
        attempt = partial(self._committer.run, deadline, stages, operation)
        budget = RetryBudget(_ATTEMPTS, deadline, self._closing)
        try:
            return run_with_retries(attempt, budget, self._write_first)
        except claims.AllRefusedError as error:
            return error.refusals


def _divide(group: Sequence[Member[ClaimRequest]]) -> None:
    """Make each member run alone, in its own thread."""
    leader, *followers = group
    leader.state = MemberState.ALONE
    for member in followers:
        member.request.stages.share(leader.request.stages, is_reported=False)
        member.decide(MemberState.ALONE)
