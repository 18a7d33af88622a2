# SPDX-License-Identifier: Apache-2.0
"""Tries the schedules of some scripts, and judges what comes of each by the serial orders."""

import textwrap
from collections import Counter
from dataclasses import dataclass
from itertools import permutations

import pytest

from tests.store.schedules.contents import renamed
from tests.store.schedules.footprints import NOTHING
from tests.store.schedules.frontier import Frontier, Watch
from tests.store.schedules.observations import Observations
from tests.store.schedules.pictures import Aftermath, Follower, aftermath
from tests.store.schedules.schedule import Course, Scheduler
from tests.store.schedules.sessions import LIMIT
from treeclaim.store.feed import shards
from treeclaim.store.writes import writer

_OBSERVED = 2
"""Maximum number of sessions whose states are compared by their observations."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a schedule, for clients and for the database."""

    results: tuple
    after: Aftermath


@dataclass(frozen=True)
class Failure:
    """A schedule that went wrong.

    Attributes:
        course: How it went.
        outcome: Its outcome.
        reasons: Why that is wrong.
        serial: The allowed outcomes.
    """

    course: Course
    outcome: Outcome
    reasons: tuple[str, ...]
    serial: tuple[Outcome, ...]


class Beginning:
    """A world and the outcomes of its schedules.

    Args:
        script: A script that writes the world to a database.
        store: Store of a database with the world.

    Attributes:
        script: As for the world.
        changes: The changes of a reader before the schedules.
        broken: Rules that the world breaks before any schedule; old data may break some.
        seen: Aftermaths by the contents of the database.
    """

    def __init__(self, script, store):
        self.script = script
        self.changes = store.changes(None)
        self.broken = aftermath(store, ()).broken
        self.seen = {}


def without_pauses(patch):
    """Let the store run a transaction again at once: what comes then is the scheduler's matter."""
    patch.setattr(writer, "_FIRST_PAUSE", 0.0)
    patch.setattr(writer, "_LONGEST_PAUSE", 0.0)
    # Only the scheduler ends a wait.
    patch.setattr(shards, "LOCK_SECONDS", 240)


class Exploration:
    """The schedules of a case.

    Args:
        place: A database.
        case: The case to explore.
        reduced: False to try schedules that differ only where it makes no difference, too.

    Attributes:
        begun: Schedules begun so far.
        count: Schedules among them that were run to their end and judged; the others came to where
            an earlier one had been.
    """

    def __init__(self, place, case, *, reduced=True):
        self._place = place
        self._scripts = case.clients
        self._preemptions = case.preemptions
        self._reduced = reduced
        self._shares_a_shard = case.world.shares_a_shard
        self._beginning = place.beginning(case.world, Beginning)
        self._serial = {}
        self.begun = 0
        self.count = 0

    def outcomes(self):
        """Try the schedules; yield how each went, and what came of it."""
        sessions = self._place.sessions[: len(self._scripts)]
        for session in sessions:
            session.touched = NOTHING
        alike = len(set(self._scripts)) == 1
        frontier = Frontier(
            sessions,
            self._preemptions,
            reduced=self._reduced,
            alike=alike,
            keeps_locks=self._place.locks_until_the_end,
        )
        for choices, before in frontier.beginnings():
            self.begun += 1
            watch = Watch(frontier, len(choices), before, self._observations(frontier))
            course, outcome = self._run(choices, watch)
            frontier.follow_guests()
            if outcome is not None:
                self.count += 1
                yield course, outcome

    def _observations(self, frontier):
        """Return the parts that distinguish states of two sessions; SQLite's driver does not let others see its answers."""
        if not self._reduced or len(self._scripts) != _OBSERVED or self._place.kind == "sqlite":
            return None
        return Observations(frontier.observed, frontier.sessions, self._place)

    def failures(self):
        """Try the schedules; yield those that go wrong.

        One that a timeout of the server ended is no schedule, and is run again: a machine or a server may stand still.
        """
        for course, outcome in self.outcomes():
            reasons = self._reasons(outcome)
            if reasons and course.seconds > LIMIT:
                if (failure := self.replay(course.choices)) is not None:
                    yield failure
            elif reasons:
                yield Failure(course, outcome, reasons, self.serial)

    def replay(self, choices):
        """Run one schedule; return a description of its failure, or None."""
        course, outcome = self._run(choices)
        self.count += 1
        reasons = self._reasons(outcome)
        return Failure(course, outcome, reasons, self.serial) if reasons else None

    def _meet(self):
        self._place.fill(self._beginning.script)
        sessions = self._place.sessions[: len(self._scripts)]
        for number, session in enumerate(sessions):
            session.meet(self._beginning.changes, 0 if self._shares_a_shard else number)
        return sessions

    def _run(self, choices, watch=None):
        """Fill the database, run one schedule, and return its aftermath; None if it was abandoned."""
        sessions = self._meet()
        course = Scheduler(self._place, self._scripts).run(choices, watch)
        if course.results is None:
            return course, None
        outcome = Outcome(course.results, self._aftermath(sessions))
        if course.is_serial:
            self._serial[self._order_of(course)] = outcome
        return course, outcome

    def _aftermath(self, sessions):
        """Read the database; contents that were seen before reuse their aftermath."""
        contents = self._place.contents()
        key = contents.marked, renamed(contents.ids)
        earlier = self._beginning.seen.get(key)
        if earlier is None:
            follower = Follower(self._beginning.changes)
            earlier = self._beginning.seen[key] = aftermath(self._place.store, [follower])
        followers = [session.follower for session in sessions if session.follower is not None]
        return earlier.told_to(self._place.store, followers)

    @property
    def serial(self):
        """Return the outcomes of the serial orders."""
        return tuple(self._serial_outcomes())

    def _serial_outcomes(self):
        """Yield what comes of each serial order; first of those that were among the schedules."""
        yield from tuple(self._serial.values())
        calls = [number for number, script in enumerate(self._scripts) for _ in script.operations]
        for order in sorted(set(permutations(calls))):
            if order not in self._serial:
                self._serial[order] = self._in_order(order)
                yield self._serial[order]

    def _order_of(self, course):
        """The order of calls in a schedule in which sessions came one after the other."""
        first = list(dict.fromkeys(course.choices))
        silent = [number for number in range(len(self._scripts)) if number not in first]
        return tuple(
            number for number in [*first, *silent] for _ in self._scripts[number].operations
        )

    def _in_order(self, order):
        """Run the operations one after the other."""
        sessions = self._meet()
        results = [[] for _ in sessions]
        for number in order:
            operation = self._scripts[number].operations[len(results[number])]
            results[number].append(operation.run(sessions[number]))
        return Outcome(tuple(map(tuple, results)), self._aftermath(sessions))

    def _reasons(self, outcome):
        """Return the faults of an outcome, as sentences; empty if it is right.

        No client may receive a concurrency conflict: a schedule with few preemptions cannot use up all retries.
        """
        reasons = [
            reason for reason in outcome.after.broken if reason not in self._beginning.broken
        ]
        if outcome.after.overbooked:
            expected = frozenset().union(*(reason.after.overbooked for reason in self.serial))
            reasons += [
                f"more is in use than there is of class {class_id} on {provider}"
                for provider, class_id in sorted(outcome.after.overbooked - expected)
            ]
        alike = (outcome.results, outcome.after.picture)
        if all(
            (serial_outcome.results, serial_outcome.after.picture) != alike
            for serial_outcome in self._serial_outcomes()
        ):
            reasons.append("no serial order ends like this")
        return tuple(reasons)


def describe(case, failure):
    """Return the steps of a failing schedule, its outcome, and how those of serial orders differ."""
    lines = [f"{case.name}, on {case.database}", f"Choices: {failure.course.choices}"]
    for step in failure.course.steps:
        statement = textwrap.shorten(step.statement, 100, placeholder=" ...")
        lines.append(f"s{step.session + 1}{' waits for' if step.waited else ':'} {statement}")
    lines += [f"WRONG: {reason}" for reason in failure.reasons]
    lines += [f"Answered: {results}" for results in failure.outcome.results]
    for serial in dict.fromkeys(failure.serial):
        lines += [f"A serial order answers: {results}" for results in serial.results]
        mine, others = (Counter(outcome.after.picture) for outcome in (failure.outcome, serial))
        lines += [f"    - {row}" for row in sorted((others - mine).elements())]
        lines += [f"    + {row}" for row in sorted((mine - others).elements())]
    return "\n".join(lines)


def explore(place, cases):
    """Explore some cases; fail with a description of the first schedule that goes wrong."""
    for case in cases:
        exploration = Exploration(place, case)
        for failure in exploration.failures():
            pytest.fail(describe(case, failure), pytrace=False)
        assert exploration.count
