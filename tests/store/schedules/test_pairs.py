# SPDX-License-Identifier: Apache-2.0
"""Each write with itself and with all later ones of its world, on each database, in every order.

Nearly all known faults of concurrent programs show with two preemptions (CHESS, PLDI 2007), most of them with
one. The tier `ci` tries one, on SQLite and, from client to client, on one of the servers.
"""

import pytest

from tests.databases import KINDS
from tests.resources import needs
from tests.store.schedules.cases import pairs
from tests.store.schedules.exploration import explore
from tests.store.schedules.worlds import WORLDS


def marks_of(kind, number, preemptions):
    """The marks of the pairs that the client with this number begins."""
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
def test_writes_that_meet_end_like_a_serial_order(place, world, client, preemptions):
    cases = pairs(place.kind, WORLDS[world], preemptions)
    explore(place, [case for case in cases if case.scripts[0] == client])
