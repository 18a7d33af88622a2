# SPDX-License-Identifier: Apache-2.0
"""Histories of random claims: their clock, the picture after each call, and their run."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.claim_calls import INVENTORIES, text_of
from treeclaim.store.database import transactions
from treeclaim.store.operations.allocations import conditions as condition_claims
from treeclaim.store.operations.allocations import holds as hold_writes
from treeclaim.store.operations.providers import conditions as condition_writes

STEPS_OF_A_HISTORY = 40
START = datetime(2026, 1, 1)  # noqa: DTZ001 - the tables have no time zones


class Clock:
    """The clock of the database, which the tests set."""

    time = START

    @classmethod
    def now(cls, _connection):
        """Return the present time."""
        return cls.time


@dataclass(frozen=True)
class Picture:
    """All that the service shows, or has to show, of consumers and conditions."""

    consumers: dict
    holds: dict
    drawn_by_hold: dict
    draws: dict
    requests: dict
    conditions: dict


def picture_of(model):
    """Return the picture that the service must show for a model."""
    holds = {
        uuid: terms | {"until": text_of(terms["until"])} for uuid, terms in model.holds.items()
    }
    drawn_by_hold, draws = {uuid: {} for uuid in holds}, {}
    for draw in model.draws:
        draws.setdefault((draw.consumer, draw.hold), {})[draw.inventory] = draw.amount
        drawn_amounts = drawn_by_hold[draw.hold]
        drawn_amounts[draw.inventory] = drawn_amounts.get(draw.inventory, 0) + draw.amount
    requests = {
        uuid: model.requests[uuid][0] if uuid in model.requests else None
        for uuid, record in model.consumers.items()
        if record["amounts"]
    }
    conditions = {
        place: (condition.effect, text_of(condition.until), condition.on_use, condition.began)
        for place, condition in model.conditions.items()
        if condition.is_present(Clock.time)
    }
    return Picture(model.consumers, holds, drawn_by_hold, draws, requests, conditions)


class Judge:
    """Checks by pictures alone that nothing is promised twice, and nothing is lost.

    Args:
        model: Computes what amounts consume.

    Attributes:
        sums: By returning hold, its held and drawn amounts after the last call.
        used: By inventory, the used amounts after the last call.
    """

    def __init__(self, model):
        self.sums, self.used = {}, {}
        self._with_consumed = model.with_consumed

    def compare(self, picture, capacity, changed):
        """Check a picture after a call that may have changed the sums of some holds; None: of all."""
        used = Counter()
        for record in picture.consumers.values():
            used.update(self._with_consumed(record["amounts"]))
        for inventory in INVENTORIES:
            assert used[inventory] <= max(capacity[inventory] or 0, self.used.get(inventory, 0))
        drawn_by_hold = {uuid: Counter() for uuid in picture.holds}
        drawn_by_consumer = Counter()
        for (uuid, hold), drawn_amounts in picture.draws.items():
            drawn_by_hold[hold].update(drawn_amounts)
            drawn_by_consumer.update(
                {(uuid, where): amount for where, amount in drawn_amounts.items()}
            )
        for (uuid, inventory), amount in drawn_by_consumer.items():
            assert amount <= picture.consumers[uuid]["amounts"][inventory]
        assert drawn_by_hold == picture.drawn_by_hold
        sums = {
            uuid: Counter(picture.consumers[uuid]["amounts"]) + drawn_by_hold[uuid]
            for uuid, terms in picture.holds.items()
            if terms["returns"]
        }
        if changed is not None:
            for uuid in sums.keys() & self.sums.keys() - changed:
                assert sums[uuid] == self.sums[uuid]
        self.sums, self.used = sums, used


def run_histories(machine, monkeypatch, steps, **members):
    """Make random calls, so many, to a driver with members such as its store."""
    Clock.time = START
    for module in (transactions, hold_writes, condition_claims, condition_writes):
        monkeypatch.setattr(module, "read_clock", Clock.now)
    run_state_machine_as_test(
        type("CallsHere", (machine,), members),
        settings=settings(
            max_examples=max(1, steps // STEPS_OF_A_HISTORY),
            stateful_step_count=STEPS_OF_A_HISTORY,
            deadline=None,
            # Shrinking would take minutes, and such histories are short enough to read.
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        ),
    )
