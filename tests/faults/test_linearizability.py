# SPDX-License-Identifier: Apache-2.0
"""The judge itself: it accepts what can be explained, and nothing else."""

import pytest

from tests.faults.harness.linearizability import FOREVER, State, Step, explained, narrowed


def claim(number, start, end, usage=4, *, there=True):
    return Step("success", start, end, usage, 1, {"consumer": (number, there)})


EMPTY = State()
HOLD = State(usage=3, held=3)
"""A provider of which all that is used is held."""

BEFORE, AFTER = Step("success", 0, 1, 4, 1), Step("success", 0, 10, 4, 1)
HELD, FREED = Step("success", 0, 1, 3, 1), Step("success", 4, 5, -3)
LIFE = [claim(1, 0, 10), claim(2, 0, 10, -4, there=False)]
SEEN = Step("read", 1, 2, 4, 1, {"consumer": 1})
DRAW = Step("success", 0, 9, 0, 1, held=-2, wanted=2)

CASES = [
    ("a read during a claim may see nothing", [AFTER, Step("read", 1, 2, 0, 0)], 4, EMPTY, True),
    ("a read during a claim may see it", [AFTER, Step("read", 1, 2, 4, 1)], 4, EMPTY, True),
    ("a read after a claim must see it", [BEFORE, Step("read", 2, 3, 0, 0)], 4, EMPTY, False),
    (
        "reads do not go back in time",
        [AFTER, Step("read", 1, 2, 4, 1), Step("read", 3, 4, 0, 0)],
        4,
        EMPTY,
        False,
    ),
    ("half a claim is never explained", [AFTER, Step("read", 1, 2, 2, 1)], 4, EMPTY, False),
    (
        "two claims beyond the capacity",
        [Step("success", 0, 9, 3, 1), Step("success", 0, 9, 2, 1)],
        4,
        EMPTY,
        False,
    ),
    ("a refusal without room", [HELD, Step("refusal", 2, 3, 2)], 4, EMPTY, True),
    ("a refusal with room", [HELD, Step("refusal", 2, 3, 1)], 4, EMPTY, False),
    ("a refusal after a release", [HELD, FREED, Step("refusal", 6, 7, 2)], 4, EMPTY, False),
    (
        "a claim with a lost response may take effect late",
        [
            Step("success", 0, FOREVER, 4, 1),
            Step("read", 5, 6, 0, 0),
            Step("read", 7, 8, 4, 1),
        ],
        4,
        EMPTY,
        True,
    ),
    ("a write seen by a read", [claim(1, 0, 10), SEEN], 4, EMPTY, True),
    (
        "a seen write and a later read without it",
        [claim(1, 0, 10), SEEN, Step("read", 3, 4, 0, 0, {})],
        4,
        EMPTY,
        False,
    ),
    (
        "a listing after a write must show it",
        [claim(1, 0, 1), Step("read", 2, 3, 0, 0, {})],
        4,
        EMPTY,
        False,
    ),
    ("a listing before a life", [*LIFE, Step("read", 1, 2, 0, 0, {})], 4, EMPTY, True),
    ("a listing after a life", [*LIFE, Step("read", 1, 2, 0, 2, {})], 4, EMPTY, True),
    ("a listing within a life", [*LIFE, Step("read", 1, 2, 0, 1, {})], 4, EMPTY, False),
    ("a draw of all of a hold", [Step("success", 0, 1, 2, 1, held=-3, wanted=5)], 5, HOLD, True),
    ("a draw of too little", [Step("success", 0, 1, 3, 1, held=-2, wanted=5)], 6, HOLD, False),
    ("a draw of too much", [Step("success", 0, 1, 1, 1, held=-4, wanted=5)], 6, HOLD, False),
    ("two draws of the same amount", [DRAW, DRAW], 9, HOLD, False),
    (
        "two draws and a return",
        [DRAW, DRAW, Step("success", 0, 9, 0, 0, held=2)],
        9,
        HOLD,
        True,
    ),
    (
        "two draws, the second of what is left",
        [DRAW, Step("success", 0, 9, 1, 1, held=-1, wanted=2)],
        9,
        HOLD,
        True,
    ),
    ("a refusal with room in the hold", [Step("refusal", 0, 1, 4, wanted=4)], 4, HOLD, False),
    ("a refusal without room in it", [Step("refusal", 0, 1, 5, wanted=5)], 4, HOLD, True),
    ("a refusal of who may not draw", [Step("refusal", 0, 1, 4)], 4, HOLD, True),
    ("a read of a hold", [Step("read", 0, 1, 3, 0, seen=3)], 4, HOLD, True),
    ("a read of another hold", [Step("read", 0, 1, 3, 0, seen=2)], 4, HOLD, False),
]


@pytest.mark.parametrize(
    ("steps", "capacity", "state", "expected"),
    [case[1:] for case in CASES],
    ids=[c[0] for c in CASES],
)
def test_history_is_explained_if_some_order_is_legal(steps, capacity, state, expected):
    assert explained(steps, capacity, state) is expected


def test_listing_orders_writes_before_and_after_it():
    listing = Step("read", 4, 5, 4, 1, {"consumer": 1})
    first, second, _ = narrowed([*LIFE, listing])
    assert (first.start, first.end) == (0, 5)
    assert (second.start, second.end) == (4, 10)
