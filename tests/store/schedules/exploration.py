# SPDX-License-Identifier: Apache-2.0
"""Runs the schedules of a case, and compares each outcome with those of the serial orders."""

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
    """The results of a schedule for its clients, and the contents of the database."""

    results: tuple
    after: Aftermath


@dataclass(frozen=True)
class Failure:
    """A schedule with a wrong outcome.

    Attributes:
        reasons: The faults of the outcome, as sentences.
        serial: The allowed outcomes.
    """

    course: Course
    outcome: Outcome
    reasons: tuple[str, ...]
    serial: tuple[Outcome, ...]


class Beginning:
    """A world and the outcomes of its schedules.

    Args:
        script: SQL that writes the world.
        store: Store of a database with the world.

    Attributes:
        script: SQL that writes the world.
        changes: Everything, as a reader loads it before the schedules.
        broken: Rules that the world itself breaks, as old data may.
        aftermaths: Known aftermaths by contents of the database.
    """

    def __init__(self, script, store):
        self.script = script
        self.changes = store.load_changes(None)
        self.broken = aftermath(store, ()).broken
        self.aftermaths = {}


def without_pauses(patch):
    """Retry transactions without a pause, so that only the scheduler orders the statements."""
    patch.setattr(writer, "_FIRST_PAUSE", 0.0)
    patch.setattr(writer, "_LONGEST_PAUSE", 0.0)
    # Only the scheduler ends a wait.
    patch.setattr(shards, "LOCK_SECONDS", 240)


class Exploration:
    """The schedules of a case.

    Args:
        place: A database.
        case: The case to explore.
        reduced: Whether to skip schedules that are equivalent to others.

    Attributes:
        begun_count: Number of schedules begun so far.
        count: Number of these that ended; the others reached a state of an earlier schedule.
    """

    def __init__(self, place, case, *, reduced=True):
        self._place = place
        self._scripts = case.clients
        self._preemptions = case.preemptions
        self._reduced = reduced
        self._shares_a_shard = case.world.shares_a_shard
        self._beginning = place.beginning(case.world, Beginning)
        self._serial = {}
        self.begun_count = 0
        self.count = 0

    def outcomes(self):
        """Run the schedules; yield the course and the outcome of each that ends."""
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
            self.begun_count += 1
            watch = Watch(frontier, len(choices), before, self._observations(frontier))
            course, outcome = self._run(choices, watch)
            frontier.follow_guests()
            if outcome is not None:
                self.count += 1
                yield course, outcome

    def _observations(self, frontier):
        """Return observations to compare states of two sessions; None on SQLite, whose driver hides its answers."""
        if not self._reduced or len(self._scripts) != _OBSERVED or self._place.kind == "sqlite":
            return None
        return Observations(frontier.observed, frontier.sessions, self._place)

    def failures(self):
        """Run the schedules; yield those with a wrong outcome.

        A schedule that took so long that a timeout may have changed it is run again.
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

    def _begin(self):
        """Fill the database; return the sessions in their initial states."""
        self._place.fill(self._beginning.script)
        sessions = self._place.sessions[: len(self._scripts)]
        for number, session in enumerate(sessions):
            session.meet(self._beginning.changes, 0 if self._shares_a_shard else number)
        return sessions

    def _run(self, choices, watch=None):
        """Run one schedule; return its course, and its outcome or None if it was abandoned."""
        sessions = self._begin()
        course = Scheduler(self._place, self._scripts).run(choices, watch)
        if course.results is None:
            return course, None
        outcome = Outcome(course.results, self._aftermath(sessions))
        if course.is_serial:
            self._serial[self._order_of(course)] = outcome
        return course, outcome

    def _aftermath(self, sessions):
        """Read the database; reuse the aftermath of known contents."""
        contents = self._place.contents()
        key = contents.marked, renamed(contents.ids)
        earlier = self._beginning.aftermaths.get(key)
        if earlier is None:
            follower = Follower(self._beginning.changes)
            earlier = self._beginning.aftermaths[key] = aftermath(self._place.store, [follower])
        followers = [session.follower for session in sessions if session.follower is not None]
        return earlier.checked_by(self._place.store, followers)

    @property
    def serial(self):
        """The outcomes of all serial orders."""
        return tuple(self._serial_outcomes())

    def _serial_outcomes(self):
        """Yield the outcomes of all serial orders, starting with known ones."""
        yield from tuple(self._serial.values())
        calls = [number for number, script in enumerate(self._scripts) for _ in script.operations]
        for order in sorted(set(permutations(calls))):
            if order not in self._serial:
                self._serial[order] = self._in_order(order)
                yield self._serial[order]

    def _order_of(self, course):
        """Return the order of calls in a serial schedule."""
        first = list(dict.fromkeys(course.choices))
        silent = [number for number in range(len(self._scripts)) if number not in first]
        return tuple(
            number for number in [*first, *silent] for _ in self._scripts[number].operations
        )

    def _in_order(self, order):
        """Run the operations in a serial order."""
        sessions = self._begin()
        results = [[] for _ in sessions]
        for number in order:
            operation = self._scripts[number].operations[len(results[number])]
            results[number].append(operation.run(sessions[number]))
        return Outcome(tuple(map(tuple, results)), self._aftermath(sessions))

    def _reasons(self, outcome):
        """Return the faults of an outcome as sentences; empty if it is right.

        A concurrency conflict is a fault too, because few preemptions cannot exhaust the retries.
        """
        reasons = [
            reason for reason in outcome.after.broken if reason not in self._beginning.broken
        ]
        if outcome.after.overbooked:
            expected = frozenset().union(*(reason.after.overbooked for reason in self.serial))
            reasons += [
                f"class {class_id} on {provider} has more usage than capacity"
                for provider, class_id in sorted(outcome.after.overbooked - expected)
            ]
        alike = (outcome.results, outcome.after.picture)
        if all(
            (serial_outcome.results, serial_outcome.after.picture) != alike
            for serial_outcome in self._serial_outcomes()
        ):
            reasons.append("no serial order has this outcome")
        return tuple(reasons)


def describe(case, failure):
    """Describe a failure: the steps of its schedule, its outcome, and the differences to the serial orders."""
    lines = [f"{case.name}, on {case.database}", f"Choices: {failure.course.choices}"]
    for step in failure.course.steps:
        statement = textwrap.shorten(step.statement, 100, placeholder=" ...")
        lines.append(f"s{step.session + 1}{' waits for' if step.waited else ':'} {statement}")
    lines += [f"WRONG: {reason}" for reason in failure.reasons]
    lines += [f"Results: {results}" for results in failure.outcome.results]
    for serial in dict.fromkeys(failure.serial):
        lines += [f"Results of a serial order: {results}" for results in serial.results]
        outcome_rows, serial_rows = (
            Counter(outcome.after.picture) for outcome in (failure.outcome, serial)
        )
        lines += [f"    - {row}" for row in sorted((serial_rows - outcome_rows).elements())]
        lines += [f"    + {row}" for row in sorted((outcome_rows - serial_rows).elements())]
    return "\n".join(lines)


def explore(place, cases):
    """Explore cases; fail with a description of the first wrong outcome."""
    for case in cases:
        exploration = Exploration(place, case)
        for failure in exploration.failures():
            pytest.fail(describe(case, failure), pytrace=False)
        assert exploration.count
