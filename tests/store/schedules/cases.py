# SPDX-License-Identifier: Apache-2.0
"""Cases to explore: the scripts of each world in pairs, and chosen triples."""

from dataclasses import dataclass
from itertools import combinations_with_replacement

from tests.store.schedules.world import World
from tests.store.schedules.worlds import WORLDS

PREEMPTIONS = 2
"""Most preemptions of a pair. Nearly all known faults of concurrent programs show with two (CHESS, PLDI 2007)."""


@dataclass(frozen=True)
class Case:
    """Scripts that run concurrently in a world.

    Attributes:
        database: Kind of the database.
        scripts: Names of the scripts; a name may occur twice.
        preemptions: Most preemptions: interruptions of a session that could continue.
    """

    database: str
    world: World
    scripts: tuple[str, ...]
    preemptions: int

    @property
    def name(self):
        return f"{self.world.name}: {' | '.join(self.scripts)}"

    @property
    def clients(self):
        return [self.world.scripts[name] for name in self.scripts]


def pairs(database, world, preemptions=PREEMPTIONS):
    """Return all pairs of scripts of a world, except those that another world explores."""
    return [
        Case(database, world, scripts, preemptions)
        for scripts in combinations_with_replacement(world.scripts, 2)
        if not world.explored.issuperset(scripts)
    ]


CRITICAL = (
    ("claims-absent", 2, "put-old", "post-exchange"),
    ("claims-absent", 1, "post-exchange", "born-and-gone"),
    ("claims-absent", 3, "delete", "born-and-moved"),
    ("claims-absent", 1, "put-null", "post-exchange", "delete"),
    ("claims-present", 2, "put-away", "reshape"),
    ("claims-present", 2, "post-exchange", "delete-and-refill"),
    ("claims-present", 1, "move", "delete", "put-other"),
    ("claims-absent", 2, "place-two", "place-mine"),
    ("claims-left-behind", 2, "place-mine", "put-null"),
    ("claims-unrecorded", 2, "put-old", "delete-and-refill"),
    ("claims-unrecorded", 2, "delete", "move"),
    ("claims-unrecorded", 2, "delete", "record-owners"),
    ("groups-absent", 2, "group-one-fits", "put-other"),
    ("groups-present", 2, "group-one-fits", "group-release-and-refill"),
    ("groups-present", 2, "group-exchange", "group-exchange"),
    ("groups-present", 1, "group-refused-first", "delete", "move"),
    ("groups-unrecorded", 2, "group-one-fits", "delete"),
    ("groups-left-behind", 2, "group-one-fits", "put-null"),
    ("groups-present", 1, "group-with-placement", "delete"),
    ("groups-left-behind", 2, "group-with-placement", "put-null"),
    ("groups-unrecorded", 2, "group-with-placement", "move"),
    ("classes-free", 2, "add-inventory", "swap-class"),
    ("classes-free", 2, "delete-class", "swap-class"),
    ("classes-free", 1, "delete-class", "create-class", "replace-inventories"),
    ("classes-stocked", 2, "claim", "swap-class"),
    ("classes-stocked", 1, "reshape", "swap-class"),
    ("trees", 2, "move-root", "move-other"),
    ("parts", 2, "give-trait", "swap-trait"),
    ("shared-shard", 2, "claim", "prune"),
    ("shared-shard", 1, "claim", "prune", "read"),
    ("followed-present", 2, "move", "read-often"),
    ("followed-present", 1, "move", "delete-and-refill", "read-often"),
    ("followed-present", 1, "put-old", "shrink", "read-often"),
)
"""Cases for former defects and the most dangerous races: two clients with more than one preemption, or three clients.
The first number is the bound of preemptions."""

_QUICK = 6
"""The quick tests try each sixth pair, which takes some seconds of one core."""


def critical(database):
    """Return the cases of `CRITICAL`."""
    return [
        Case(database, WORLDS[world], scripts, preemptions)
        for world, preemptions, *names in CRITICAL
        for scripts in [tuple(names)]
    ]


def quick():
    """Return pairs for SQLite with a reader or the pruner, because its writers never interleave."""
    chosen_cases = [
        case
        for name in (
            "claims-absent",
            "groups-present",
            "trees",
            "classes-stocked",
            "parts",
            "shared-shard",
            "followed-present",
        )
        for case in pairs("sqlite", WORLDS[name])
        if {"read", "read-often", "prune"} & set(case.scripts)
    ]
    return chosen_cases[::_QUICK]
