# SPDX-License-Identifier: Apache-2.0
"""The judge itself: it accepts what can be explained, and nothing else."""

from tests.faults.harness.linearizability import FOREVER, State, Step, explained, narrowed


def test_a_read_during_a_claim_may_see_either_state():
    claim = Step("success", 0, 10, 4, 1)
    assert explained([claim, Step("read", 1, 2, 0, 0)], capacity=4)
    assert explained([claim, Step("read", 1, 2, 4, 1)], capacity=4)


def test_a_read_after_a_claim_must_see_it():
    claim = Step("success", 0, 1, 4, 1)
    assert not explained([claim, Step("read", 2, 3, 0, 0)], capacity=4)


def test_reads_do_not_go_back_in_time():
    claim = Step("success", 0, 10, 4, 1)
    reads = [Step("read", 1, 2, 4, 1), Step("read", 3, 4, 0, 0)]
    assert not explained([claim, *reads], capacity=4)


def test_half_a_claim_is_never_explained():
    assert not explained([Step("success", 0, 10, 4, 1), Step("read", 1, 2, 2, 1)], capacity=4)


def test_two_claims_beyond_the_capacity_are_not_explained():
    assert not explained([Step("success", 0, 9, 3, 1), Step("success", 0, 9, 2, 1)], capacity=4)


def test_a_refusal_needs_a_moment_without_room():
    held = Step("success", 0, 1, 3, 1)
    assert explained([held, Step("refusal", 2, 3, 2)], capacity=4)
    assert not explained([held, Step("refusal", 2, 3, 1)], capacity=4)
    freed = Step("success", 4, 5, -3)
    assert not explained([held, freed, Step("refusal", 6, 7, 2)], capacity=4)


def test_claim_with_lost_response_may_take_effect_late():
    lost = Step("success", 0, FOREVER, 4, 1)
    reads = [Step("read", 5, 6, 0, 0), Step("read", 7, 8, 4, 1)]
    assert explained([lost, *reads], capacity=4)


def claim(number, start, end, usage=4, *, there=True):
    return Step("success", start, end, usage, 1, {"consumer": (number, there)})


def test_listing_orders_writes_before_and_after_it():
    listing = Step("read", 4, 5, 4, 1, {"consumer": 1})
    first, second, _ = narrowed([claim(1, 0, 10), claim(2, 0, 10, -4, there=False), listing])
    assert (first.start, first.end) == (0, 5)
    assert (second.start, second.end) == (4, 10)


def test_a_write_seen_by_a_read_and_unseen_by_a_later_one_is_not_explained():
    seen = Step("read", 1, 2, 4, 1, {"consumer": 1})
    unseen = Step("read", 3, 4, 0, 0, {})
    assert explained([claim(1, 0, 10), seen], capacity=4)
    assert not explained([claim(1, 0, 10), seen, unseen], capacity=4)


def test_a_listing_after_a_write_must_show_it():
    assert not explained([claim(1, 0, 1), Step("read", 2, 3, 0, 0, {})], capacity=4)


def test_listing_without_a_consumer_may_precede_or_follow_its_life():
    life = [claim(1, 0, 10), claim(2, 0, 10, -4, there=False)]
    assert explained([*life, Step("read", 1, 2, 0, 0, {})], capacity=4)
    assert explained([*life, Step("read", 1, 2, 0, 2, {})], capacity=4)
    assert not explained([*life, Step("read", 1, 2, 0, 1, {})], capacity=4)


HOLD = State(usage=3, held=3)
"""A provider of which all that is used is held."""


def test_draw_must_take_all_that_the_hold_has():
    all_of_it = Step("success", 0, 1, 2, 1, held=-3, wanted=5)
    assert explained([all_of_it], capacity=5, state=HOLD)
    assert not explained([Step("success", 0, 1, 3, 1, held=-2, wanted=5)], capacity=6, state=HOLD)
    assert not explained([Step("success", 0, 1, 1, 1, held=-4, wanted=5)], capacity=6, state=HOLD)


def test_two_draws_cannot_take_the_same_amount():
    draws = [Step("success", 0, 9, 0, 1, held=-2, wanted=2) for _ in range(2)]
    assert not explained(draws, capacity=9, state=HOLD)
    back = Step("success", 0, 9, 0, 0, held=2)
    assert explained([*draws, back], capacity=9, state=HOLD)
    assert explained([draws[0], Step("success", 0, 9, 1, 1, held=-1, wanted=2)], 9, HOLD)


def test_refusal_needs_a_moment_without_room_in_the_hold():
    assert not explained([Step("refusal", 0, 1, 4, wanted=4)], capacity=4, state=HOLD)
    assert explained([Step("refusal", 0, 1, 5, wanted=5)], capacity=4, state=HOLD)
    assert explained([Step("refusal", 0, 1, 4)], capacity=4, state=HOLD)


def test_read_of_a_hold_must_match_its_state():
    assert explained([Step("read", 0, 1, 3, 0, seen=3)], capacity=4, state=HOLD)
    assert not explained([Step("read", 0, 1, 3, 0, seen=2)], capacity=4, state=HOLD)
