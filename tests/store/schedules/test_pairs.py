# SPDX-License-Identifier: Apache-2.0
"""All pairs of scripts of each world, on each database, in every order.

The tier `ci` allows one preemption, on SQLite and on one of the servers, by turns. Nearly all known faults of
concurrent programs show with two preemptions, most of them with one (CHESS, PLDI 2007).
"""

import pytest

from tests.databases import KINDS
from tests.resources import needs
from tests.store.schedules.cases import pairs
from tests.store.schedules.exploration import explore
from tests.store.schedules.worlds import WORLDS


def marks_of(kind, number, preemptions):
    """Return the marks of the pairs that begin with the script of this number."""
    servers = KINDS[1:]
    marks = [needs(kind)] if kind in servers else []
    is_turn_of_other = kind in servers and kind != servers[number % len(servers)]
    return [*marks, pytest.mark.long] if preemptions > 1 or is_turn_of_other else marks


CASES = [
    pytest.param(kind, name, client, preemptions, marks=marks_of(kind, number, preemptions))
    for name in WORLDS
    for kind in KINDS
    for number, client in enumerate(WORLDS[name].scripts)
    if client not in WORLDS[name].explored
    for preemptions in (1, 2)
]


@pytest.mark.slow
@pytest.mark.parametrize(("place", "world", "client", "preemptions"), CASES, indirect=["place"])
def test_concurrent_writes_end_like_a_serial_order(place, world, client, preemptions):
    cases = pairs(place.kind, WORLDS[world], preemptions)
    explore(place, [case for case in cases if case.scripts[0] == client])
