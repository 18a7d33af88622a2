# SPDX-License-Identifier: Apache-2.0
"""Explore without a limit: `python -m tests.store.schedules --database postgresql`.

Exit status 1 when a schedule went wrong; each is printed with the command that repeats it.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.databases import KINDS
from tests.store.schedules.cases import PREEMPTIONS, Case, pairs
from tests.store.schedules.exploration import Exploration, without_pauses
from tests.store.schedules.places import place_of
from tests.store.schedules.scripts import written
from tests.store.schedules.worlds import WORLDS


def arguments():
    """The options of the command line; what cannot be understood ends the process."""
    parser = argparse.ArgumentParser(prog="python -m tests.store.schedules", description=__doc__)
    parser.add_argument("--database", choices=KINDS, required=True)
    parser.add_argument("--world", choices=WORLDS, action="append", help="all of them by default")
    parser.add_argument("--scripts", nargs="+", help="of one world; all pairs by default")
    parser.add_argument("--preemptions", type=int, default=PREEMPTIONS)
    parser.add_argument("--replay", help="one schedule: the sessions by number, such as 11221")
    parser.add_argument("--all-failures", action="store_true", help="not only the first of a case")
    return parser.parse_args()


def cases(options):
    """The options of the command."""
    for name in options.world or WORLDS:
        world = WORLDS[name]
        if options.scripts is None:
            yield from pairs(options.database, world, options.preemptions)
        else:
            yield Case(options.database, world, tuple(options.scripts), options.preemptions)


def explore(place, case, options):
    """Explore one case, or replay one schedule of it; print and count what goes wrong."""
    begin = time.process_time()
    exploration = Exploration(place, case)
    if options.replay:
        failures = [exploration.replay([int(number) - 1 for number in options.replay])]
        failures = [failure for failure in failures if failure is not None]
    else:
        failures = exploration.failures()
    wrong = 0
    for failure in failures:
        wrong += 1
        print(f"\n{written(case, failure)}\n", flush=True)
        if not options.all_failures:
            break
    print(
        f"{case.database}, {case.preemptions} preemptions, {case.name} = {exploration.begun} schedules begun,"
        f" {exploration.count} judged, {wrong} wrong, {time.process_time() - begin:.2f} s",
        flush=True,
    )
    return wrong


def main():
    """Explore; return the exit status."""
    options = arguments()
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as folder,
        place_of(options.database, Path(folder)) as place,
    ):
        without_pauses(patch)
        wrong = sum(explore(place, case, options) for case in cases(options))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
