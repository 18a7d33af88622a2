# SPDX-License-Identifier: Apache-2.0
"""What a series keeps between calls, and when it begins anew."""

from time import monotonic

import pytest

from tests.forest.building import BEGINNING, complete, provider_uuid, record
from treeclaim.forest.placing.series import OutOfTimeError, Series
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Changes, UsageChange
from treeclaim.model.extension.placing import PlacingRequest
from treeclaim.model.request import CandidateRequest, RequestGroup

FIRST, SECOND = 1, 2
BYTES = 1_000_000
LONG = 3_600.0


@pytest.fixture
def forest():
    """Two hosts with room for two consumers each."""
    made = Forest()
    made.apply(complete([record(number, inventories={"VCPU": 8}) for number in (FIRST, SECOND)]))
    return made


def wanted(amount=4):
    group = RequestGroup("", {"VCPU": amount})
    return PlacingRequest((CandidateRequest((group,)),), ("c",), "p", "u", "t")


def placed(series, request=None, seconds=LONG):
    """On which host a consumer is placed, None for nowhere."""
    found = series.place(request or wanted(), monotonic() + seconds)
    if found is None:
        return None
    (uuid,) = found.allocations
    return [provider_uuid(number) for number in (FIRST, SECOND)].index(uuid) + 1


def use(forest, number, amount):
    """Let more of a host be used, or less."""
    (class_id,) = forest.classes
    usage = {number: UsageChange({class_id: amount}, 0, 0, 0.0)}
    forest.apply(
        Changes(BEGINNING, complete=False, records=[], removed=[], catalogue=None, usage=usage)
    )


def test_consumers_are_placed_beside_those_before_them(forest):
    series = Series(forest, BYTES)
    assert [placed(series) for _ in range(5)] == [1, 1, 2, 2, None]


def test_what_was_placed_and_not_written_is_free_again(forest):
    series = Series(forest, BYTES)
    assert [placed(series), placed(series)] == [1, 1]
    assert series.may_follow(forest)
    assert placed(series) == 1


def test_what_was_placed_and_written_stays_used(forest):
    series = Series(forest, BYTES)
    assert [placed(series), placed(series)] == [1, 1]
    use(forest, FIRST, 8)
    assert series.may_follow(forest)
    assert placed(series) == 2


def test_a_host_that_was_full_from_the_beginning_is_found_once_it_has_room(forest):
    use(forest, FIRST, 8)
    series = Series(forest, BYTES)
    assert placed(series) == 2
    use(forest, FIRST, -8)
    assert series.may_follow(forest)
    assert placed(series) == 1


def test_a_class_that_nobody_has_taken_of_yet_is_followed_too(forest):
    use(forest, FIRST, 8)
    use(forest, SECOND, 8)
    series = Series(forest, BYTES)
    assert placed(series) is None
    use(forest, SECOND, -4)
    assert series.may_follow(forest)
    assert placed(series) == 2


@pytest.mark.parametrize(
    "change",
    [
        record(FIRST, inventories={"VCPU": 4}),
        record(FIRST, inventories={"VCPU": 8, "DISK_GB": 1}),
        record(3, inventories={"VCPU": 8}),
    ],
    ids=["another amount", "another class", "another host"],
)
def test_it_begins_anew_after_a_change_of_more_than_what_is_used(forest, change):
    series = Series(forest, BYTES)
    assert placed(series) == 1
    forest.apply(Changes(BEGINNING, complete=False, records=[change], removed=[], catalogue=None))
    assert not series.may_follow(forest)


def test_it_ends_when_its_time_is_over(forest):
    with pytest.raises(OutOfTimeError):
        placed(Series(forest, BYTES), seconds=-1)
