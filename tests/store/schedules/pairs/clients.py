# SPDX-License-Identifier: Apache-2.0
"""Which pairs a test tries: a client with itself and all that come after it in its world."""

import pytest

from tests.databases import EACH_DATABASE
from tests.store.schedules.cases import pairs
from tests.store.schedules.worlds import WORLDS

EVERYWHERE = pytest.mark.parametrize("place", EACH_DATABASE, indirect=True)
PREEMPTIONS = pytest.mark.parametrize("preemptions", [1, pytest.param(2, marks=pytest.mark.long)])
"""Nearly all known faults of concurrent programs show with two (CHESS, PLDI 2007), most of them with one."""


def clients_of(*names):
    """Let a test run for each client of some worlds."""
    return pytest.mark.parametrize(
        ("world", "client"), [(name, client) for name in names for client in WORLDS[name].scripts]
    )


def pairs_of(client, world, database, preemptions):
    """The pairs that a client begins."""
    return [
        case for case in pairs(database, WORLDS[world], preemptions) if case.scripts[0] == client
    ]
