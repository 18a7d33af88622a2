# SPDX-License-Identifier: Apache-2.0
"""The pairs of a test: a client with itself and with all later ones in its world."""

import pytest

from tests.databases import KINDS
from tests.resources import needs
from tests.store.schedules.cases import pairs
from tests.store.schedules.worlds import WORLDS


def clients_of(*names):
    """Let a test run for each client of some worlds, on each database, with one preemption and with two.

    Nearly all known faults of concurrent programs show with two preemptions (CHESS, PLDI 2007), most of them with
    one. The tier `ci` tries one, on SQLite and, from client to client, on one of the servers.
    """
    cases = [
        pytest.param(kind, name, client, preemptions, marks=marks_of(kind, number, preemptions))
        for name in names
        for kind in KINDS
        for number, client in enumerate(WORLDS[name].scripts)
        for preemptions in (1, 2)
    ]
    return pytest.mark.parametrize(
        ("place", "world", "client", "preemptions"), cases, indirect=["place"]
    )


def marks_of(kind, number, preemptions):
    """The marks of the pairs that the client with this number begins."""
    servers = KINDS[1:]
    marks = [needs(kind)] if kind in servers else []
    is_turn_of_other = kind in servers and kind != servers[number % len(servers)]
    return [*marks, pytest.mark.long] if preemptions > 1 or is_turn_of_other else marks


def pairs_of(client, world, database, preemptions):
    """The pairs that a client begins."""
    return [
        case for case in pairs(database, WORLDS[world], preemptions) if case.scripts[0] == client
    ]
