# SPDX-License-Identifier: Apache-2.0
"""The time from a start to the first response, and the memory of a service then."""

import time

import psutil

from bench.clients.endpoint import Endpoint
from bench.measuring.row import Row
from tests import peer
from tests.clouds import World


def first_answer(endpoint: Endpoint, process: psutil.Process, world: World) -> Row:
    """Ask the first question of all to a service that has just started."""
    endpoint.ask("resources=VCPU:1", 1)
    return Row(
        case=f"{world.name}: first answer",
        endpoint=endpoint.name,
        median_ms=(time.time() - process.create_time()) * 1000,
        resident_bytes=peer.memory_of(process),
        providers=world.size,
    )


def bytes_each(row: Row, smallest: Row) -> float | None:
    """Return by how many bytes the memory of a service grows with each provider.

    Args:
        row: About a large world.
        smallest: About the smallest world that the same service held.
    """
    more = (row.providers or 0) - (smallest.providers or 0)
    if row.resident_bytes is None or smallest.resident_bytes is None or more <= 0:
        return None
    return (row.resident_bytes - smallest.resident_bytes) / more
