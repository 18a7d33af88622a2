# SPDX-License-Identifier: Apache-2.0
"""The judge itself: it accepts what can be explained, and nothing else."""

from functools import partial

import pytest

from tests.faults.harness.linearizability import FOREVER, Step, explained, narrowed


def claim(number, start, end, usage=4, *, is_present=True):
    return Step("success", start, end, usage, 1, {"consumer": (number, is_present)})


def success(start, end, usage):
    return Step("success", start, end, usage, 1)


read = partial(Step, "read")

BEFORE, AFTER = success(0, 1, 4), success(0, 10, 4)
CLAIM_STEP, RELEASE_STEP = success(0, 1, 3), Step("success", 4, 5, -3)
LIFE = [claim(1, 0, 10), claim(2, 0, 10, -4, is_present=False)]
LISTING_STEP = read(1, 2, 4, 1, {"consumer": 1})

CAPACITY = 4
CASES = {
    "a read during a claim may see nothing": ([AFTER, read(1, 2, 0, 0)], True),
    "a read during a claim may see it": ([AFTER, read(1, 2, 4, 1)], True),
    "a read after a claim must see it": ([BEFORE, read(2, 3, 0, 0)], False),
    "reads do not go back in time": ([AFTER, read(1, 2, 4, 1), read(3, 4, 0, 0)], False),
    "half a claim is never explained": ([AFTER, read(1, 2, 2, 1)], False),
    "two claims beyond the capacity": ([success(0, 9, 3), success(0, 9, 2)], False),
    "a refusal without room": ([CLAIM_STEP, Step("refusal", 2, 3, 2)], True),
    "a refusal with room": ([CLAIM_STEP, Step("refusal", 2, 3, 1)], False),
    "a refusal after a release": ([CLAIM_STEP, RELEASE_STEP, Step("refusal", 6, 7, 2)], False),
    "a claim with a lost response may take effect late": (
        [success(0, FOREVER, 4), read(5, 6, 0, 0), read(7, 8, 4, 1)],
        True,
    ),
    "a write seen by a read": ([claim(1, 0, 10), LISTING_STEP], True),
    "a seen write and a later read without it": (
        [claim(1, 0, 10), LISTING_STEP, read(3, 4, 0, 0, {})],
        False,
    ),
    "a listing after a write must show it": ([claim(1, 0, 1), read(2, 3, 0, 0, {})], False),
    "a listing before a life": ([*LIFE, read(1, 2, 0, 0, {})], True),
    "a listing after a life": ([*LIFE, read(1, 2, 0, 2, {})], True),
    "a listing within a life": ([*LIFE, read(1, 2, 0, 1, {})], False),
}


@pytest.mark.parametrize(("steps", "expected"), CASES.values(), ids=CASES)
def test_history_is_explained_if_some_order_is_legal(steps, expected):
    assert explained(steps, CAPACITY) is expected


def test_listing_orders_writes_before_and_after_it():
    listing = read(4, 5, 4, 1, {"consumer": 1})
    first, second, _ = narrowed([*LIFE, listing])
    assert (first.start, first.end) == (0, 5)
    assert (second.start, second.end) == (4, 10)
