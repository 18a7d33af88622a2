# SPDX-License-Identifier: Apache-2.0
"""Writes a group of claims in one transaction, or divides it (decision 0014)."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sqlalchemy.exc import SQLAlchemyError

from treeclaim import metrics
from treeclaim.model.errors import TreeclaimError
from treeclaim.store.database.failures import Failure, Outages, failure_of
from treeclaim.store.database.systems import DatabaseSettings
from treeclaim.store.database.transactions import (
    DeadlineError,
    WriteTransaction,
)
from treeclaim.store.operations.allocations import claims
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.writes.commit import Committer, UnknownOutcomeError
from treeclaim.store.writes.groups import Member, MemberState
from treeclaim.store.writes.retries import RetryBudget, run_with_retries

_ATTEMPTS = 3
"""Attempts of a group. After that it is divided: alone, its claims lock less."""

_LOCK_SECONDS = 1
"""Seconds that a group waits for a lock. Queues before a shared pool take some hundredths of a second;
a group that waits longer is divided, so that only the claims that need the lock go on waiting."""

_SHARED_FAILURES = {Failure.SILENT, Failure.POOL_TIMEOUT}
"""Failures for which each member alone would wait as long again."""


_CONNECTIONS = 2
"""For groups, kept open. There is one group at a time, but beside a stuck one."""


def group_settings(settings: DatabaseSettings) -> DatabaseSettings:
    """Return the settings of the connections that write groups: few, with a short lock timeout."""
    timeouts = replace(settings.timeouts, lock=min(settings.timeouts.lock, _LOCK_SECONDS))
    return replace(settings, timeouts=timeouts, max_pool_size=_CONNECTIONS)


class GroupCommit:
    """Writes groups; threads may share it.

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

        A conflict makes the whole group run again. Any other failure may be the fault of one
        member, so each then runs alone, within its own deadline.
        """
        metrics.CLAIM_GROUPS.observe(len(group))
        try:
            refusals = self._commit(group)
        except UnknownOutcomeError as error:
            cause = str(error)
            refusals = [self._outages.unknown_outcome(cause) for _ in group]
        except SQLAlchemyError as error:
            if failure_of(error) not in _SHARED_FAILURES:
                _divide(group)
                return
            refusals = [self._outages.refused(error) for _ in group]
        except (TreeclaimError, DeadlineError):
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
            ConcurrentChangeError: if all attempts met others.
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
    """Let each member run by itself, in its own thread."""
    leader, *followers = group
    leader.state = MemberState.ALONE
    for member in followers:
        member.request.stages.share(leader.request.stages, is_reported=False)
        member.decide(MemberState.ALONE)
