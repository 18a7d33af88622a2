# SPDX-License-Identifier: Apache-2.0
"""The processor time of a replay."""

import random

import pytest

from tests.machine import slowness
from tests.replay.traces import GPU, NODES, PODS, told, written

ARRIVALS = 10_000
NODE_COUNT = 1_200
SECONDS = 5.0


@pytest.mark.slow
def test_ten_thousand_arrivals_are_placed_in_five_seconds(tmp_path):
    draw = random.Random(1)
    shapes = [
        (96_000, 393_216, 8, "G2"),
        (104_000, 524_288, 2, "T4"),
        (16_000, 122_880, 2, "P100"),
    ]
    nodes = [draw.choices(shapes, [5, 4, 1])[0] for _ in range(NODE_COUNT)]
    kinds = [
        (draw.choice([1, 4, 6, 8, 12, 16]) * 1_000, draw.choice([4, 16, 32]) * 1_024, 1, share)
        for share in [1_000] * 30 + [50 * draw.randint(4, 16) for _ in range(90)]
    ]
    kinds += [(96_000, 262_144, 8, 1_000), (32_000, 65_536, 2, 1_000), (8_000, 16_384, 0, 0)]
    pods = [draw.choice(kinds) for _ in range(ARRIVALS)]
    files = written(
        tmp_path,
        nodes_csv=NODES
        + "".join(f"n{at},{c},{m},{g},{k}\n" for at, (c, m, g, k) in enumerate(nodes)),
        pods_csv=PODS
        + "".join(f"p{at},{c},{m},{g},{s},,LS\n" for at, (c, m, g, s) in enumerate(pods)),
    )
    order = f"keep:pods:{GPU}"
    found = told(*files.values(), "--from", "openb", "--order", order)[order]
    seconds = ARRIVALS / found["placements_per_second"]["mean"]
    assert seconds < SECONDS * slowness()
