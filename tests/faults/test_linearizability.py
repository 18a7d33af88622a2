# SPDX-License-Identifier: Apache-2.0
"""The judge itself: it accepts what can be explained, and nothing else."""

import pytest

from tests.faults.harness.linearizability import FOREVER, Step, explained, narrowed


def claim(number, start, end, usage=4, *, there=True):
    return Step("success", start, end, usage, 1, {"consumer": (number, there)})


BEFORE, AFTER = Step("success", 0, 1, 4, 1), Step("success", 0, 10, 4, 1)
HELD, FREED = Step("success", 0, 1, 3, 1), Step("success", 4, 5, -3)
LIFE = [claim(1, 0, 10), claim(2, 0, 10, -4, there=False)]
SEEN = Step("read", 1, 2, 4, 1, {"consumer": 1})

CASES = [
    ("a read during a claim may see nothing", [AFTER, Step("read", 1, 2, 0, 0)], 4, True),
    ("a read during a claim may see it", [AFTER, Step("read", 1, 2, 4, 1)], 4, True),
    ("a read after a claim must see it", [BEFORE, Step("read", 2, 3, 0, 0)], 4, False),
    (
        "reads do not go back in time",
        [AFTER, Step("read", 1, 2, 4, 1), Step("read", 3, 4, 0, 0)],
        4,
        False,
    ),
    ("half a claim is never explained", [AFTER, Step("read", 1, 2, 2, 1)], 4, False),
    (
        "two claims beyond the capacity",
        [Step("success", 0, 9, 3, 1), Step("success", 0, 9, 2, 1)],
        4,
        False,
    ),
    ("a refusal without room", [HELD, Step("refusal", 2, 3, 2)], 4, True),
    ("a refusal with room", [HELD, Step("refusal", 2, 3, 1)], 4, False),
    ("a refusal after a release", [HELD, FREED, Step("refusal", 6, 7, 2)], 4, False),
    (
        "a claim with a lost response may take effect late",
        [
            Step("success", 0, FOREVER, 4, 1),
            Step("read", 5, 6, 0, 0),
            Step("read", 7, 8, 4, 1),
        ],
        4,
        True,
    ),
    ("a write seen by a read", [claim(1, 0, 10), SEEN], 4, True),
    (
        "a seen write and a later read without it",
        [claim(1, 0, 10), SEEN, Step("read", 3, 4, 0, 0, {})],
        4,
        False,
    ),
    (
        "a listing after a write must show it",
        [claim(1, 0, 1), Step("read", 2, 3, 0, 0, {})],
        4,
        False,
    ),
    ("a listing before a life", [*LIFE, Step("read", 1, 2, 0, 0, {})], 4, True),
    ("a listing after a life", [*LIFE, Step("read", 1, 2, 0, 2, {})], 4, True),
    ("a listing within a life", [*LIFE, Step("read", 1, 2, 0, 1, {})], 4, False),
]


@pytest.mark.parametrize(
    ("steps", "capacity", "expected"),
    [case[1:] for case in CASES],
    ids=[c[0] for c in CASES],
)
def test_history_is_explained_if_some_order_is_legal(steps, capacity, expected):
    assert explained(steps, capacity) is expected


def test_listing_orders_writes_before_and_after_it():
    listing = Step("read", 4, 5, 4, 1, {"consumer": 1})
    first, second, _ = narrowed([*LIFE, listing])
    assert (first.start, first.end) == (0, 5)
    assert (second.start, second.end) == (4, 10)
