# SPDX-License-Identifier: Apache-2.0
"""The speed of this machine, for tests that hold processor time against a documented bound.

Bounds such as 20 ms of processor time are stated for one machine. Another takes longer for the same work,
and so does this one while its cores are shared. A fixed piece of work, of the kinds that a request is made of,
says how much longer.
"""

import json
import time
from statistics import median

_REFERENCE = 0.012
"""Seconds of processor time that the piece of work takes on the machine that the bounds are stated for:
the least of 300 times."""

_TRIES = 5

_TEXT = json.dumps([{"name": f"host-{number}", "used": [number] * 8} for number in range(8000)])


def slowness():
    """Return how many times slower this machine is than the machine of the bounds; at least 1."""
    return max(1.0, median(_seconds() for _ in range(_TRIES)) / _REFERENCE)


def on_the_machine_of_the_bounds(seconds, most):
    """Scale seconds that were measured here, if they exceed `most`, to the reference machine.

    What took no more is given back as it is: to ask how fast this machine is takes longer.
    """
    return seconds if seconds <= most else seconds / slowness()


def _seconds():
    begin = time.thread_time()
    found = {entry["name"]: sum(entry["used"]) for entry in json.loads(_TEXT)}
    ordered = sorted(found.items(), key=lambda pair: (pair[1] % 17, pair[0]))
    assert len({f"{name}={used:06}" for name, used in ordered}) == len(found)
    return time.thread_time() - begin
