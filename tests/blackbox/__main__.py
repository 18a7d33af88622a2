# SPDX-License-Identifier: Apache-2.0
"""Compare two endpoints: `python -m tests.blackbox --ours URL --theirs URL`.

Both are emptied. Exit status 1 when an answer differs and nothing explains why.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from random import Random

from tests.blackbox import differences
from tests.blackbox.endpoint import Endpoint
from tests.blackbox.episode import Episode, Finding, Sides

WRITES_OF_A_WORLD = 100


def arguments() -> argparse.Namespace:
    """Return the options of the command line; what cannot be understood ends the process."""
    parser = argparse.ArgumentParser(prog="python -m tests.blackbox", description=__doc__)
    parser.add_argument("--ours", required=True, help="address of the endpoint under test")
    parser.add_argument("--theirs", required=True, help="address of the endpoint it must equal")
    parser.add_argument(
        "--seed", type=int, default=1, help="the same seed sends the same requests"
    )
    parser.add_argument("--requests", type=int, default=10_000, help="reads to compare")
    parser.add_argument("--writes", type=int, default=2_000, help="writes to compare")
    parser.add_argument("--stop-after", type=int, default=10, help="kinds of differences to show")
    return parser.parse_args()


def compare(options: argparse.Namespace, sides: Sides, totals: Counter[str]) -> Iterator[Finding]:
    """Worlds, one after the other, until there have been enough requests."""
    reads_for_each = max(1, round(options.requests / max(1, options.writes)))
    for number in range(10**9):
        if totals["writes"] >= options.writes and totals["reads"] >= options.requests:
            return
        episode = Episode(
            sides,
            Random(f"{options.seed}/{number}"),
            note=lambda name: totals.update([f"known: {name}"]),
            count=lambda kind: totals.update([kind]),
        )
        yield from episode.run(WRITES_OF_A_WORLD, reads_for_each)


def show(finding: Finding) -> None:
    """Print a difference and the writes that lead to it."""
    print(f"\n{finding.exchange.request}")
    for difference in finding.differences:
        print(f"    {difference}")
    print(f"  after {len(finding.history)} writes:")
    for request in finding.history:
        print(f"    {request}")
    sys.stdout.flush()


def main() -> int:
    """Compare; return the exit code: 1 if there is a difference that nobody has explained."""
    options = arguments()
    totals: Counter[str] = Counter()
    seen: Counter[tuple[str, ...]] = Counter()
    with Endpoint.at(options.ours) as ours, Endpoint.at(options.theirs) as theirs:
        sides = Sides(ours, theirs)
        for finding in compare(options, sides, totals):
            seen[finding.exchange.signature] += 1
            if seen[finding.exchange.signature] > 1:
                continue
            show(finding)
            if len(seen) >= options.stop_after:
                break
    report(totals, seen)
    return 1 if seen else 0


def report(totals: Counter[str], seen: Counter[tuple[str, ...]]) -> None:
    """Print how much was compared, and which differences were met how often."""
    print(f"\n{totals['writes']} writes and {totals['reads']} reads were compared.")
    for known in differences.KNOWN:
        if totals[f"known: {known.name}"]:
            print(f"  {totals[f'known: {known.name}']} times {known.name}: {known.reason}")
    for signature, count in seen.most_common():
        print(f"  {count} times UNEXPLAINED: {' '.join(signature)}")


if __name__ == "__main__":
    sys.exit(main())
