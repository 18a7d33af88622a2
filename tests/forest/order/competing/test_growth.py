# SPDX-License-Identifier: Apache-2.0
"""The work of an ordered search grows with slots and options, not with the ways to combine them.

Whatever the terms, their weights and the rules: for its first candidate a search looks at no more partial
candidates than some for each slot and option. Worlds are drawn; what is counted is the same on all machines.
"""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.forest.building import answer_of, forest_of, record
from tests.properties.forest_adapter import lowered
from treeclaim.forest.bounds import thresholds
from treeclaim.forest.order.competing.completions import Completions
from treeclaim.forest.order.scoring import Scoring
from treeclaim.forest.solve.partial.combiner import Combiner
from treeclaim.model.extension.order import Order, Preference, Term, TermName
from treeclaim.model.request import CandidateRequest, RequestGroup

FAST = "CUSTOM_FAST"
DEVICE = "CUSTOM_DEVICE"

AT_ONCE = {"LOOSE_CANDIDATES": 0, "CLOSE_CANDIDATES": 0, "LOOSE_FOR_EACH": 0, "BEST_PAIRS": 1}
"""Bounds are close from the beginning on, so that nothing is looked at for the sake of speed."""

FOR_EACH_OPTION = 4
"""Partial candidates that may be looked at for each slot and option: each is made, and judged perhaps
more than once."""

GIVEN_UP = 5_000
"""So many partial candidates are looked at before a test ends."""


class Work:
    """Counts the partial candidates that searches look at.

    Attributes:
        done: How many were made or judged alone.
    """

    def __init__(self, patch):
        self.done = 0
        extended, closest_bounds = Combiner.extended, Scoring.closest_bounds

        def counted(combiner, *arguments, **options):
            grown, taken = extended(combiner, *arguments, **options)
            self._add(len(grown))
            return grown, taken

        def judged(scoring, partial, bounds):
            self._add(1)
            return closest_bounds(scoring, partial, bounds)

        patch.setattr(Combiner, "extended", counted)
        patch.setattr(Scoring, "closest_bounds", judged)

    def _add(self, count):
        self.done += count
        assert self.done < GIVEN_UP, "this search goes through all combinations"


def host(devices, nodes):
    """A host with devices, each a pair of total and used; below nodes, if there are any."""
    records = [record(1, inventories={"VCPU": 64})]
    records += [record(2 + node, 1, 1, {"MEMORY_MB": 1000}) for node in range(nodes)]
    for number, (total, used) in enumerate(devices):
        parent = 2 + number * nodes // len(devices) if nodes else 1
        records.append(
            record(
                2 + nodes + number,
                parent,
                1,
                {DEVICE: (total, used)},
                traits=[FAST] if number % 4 == 3 else [],
            )
        )
    return forest_of(records)


def work_of(forest, amounts, terms, *, isolated):
    """How much is looked at for the first candidate of groups of some amounts."""
    groups = tuple(RequestGroup(f"_{at}", {DEVICE: amount}) for at, amount in enumerate(amounts))
    suffixes = tuple(group.suffix for group in groups)
    made = tuple(
        Term(name, suffixes if name in (TermName.NEAR, TermName.FAR) else (), weight)
        for name, weight in terms
    )
    preferences = tuple(Preference(suffix, FAST) for suffix in suffixes)
    request = CandidateRequest(
        groups,
        limit=1,
        isolated=frozenset(suffixes) if isolated else frozenset(),
        order=Order(made, preferences if TermName.PREFERRED in dict(terms) else ()),
    )
    with pytest.MonkeyPatch.context() as patch:
        work = Work(patch)
        answer_of(forest, request)
    return work.done


def allowed(groups, devices):
    """How many partial candidates may be looked at."""
    return thresholds.CLOSE_CANDIDATES + FOR_EACH_OPTION * groups * devices


@st.composite
def devices(draw):
    count = draw(st.integers(8, 20))
    total = st.integers(2, 5) if draw(st.booleans()) else st.integers(20, 60)
    totals = draw(st.lists(total, min_size=count, max_size=count))
    return [(most, draw(st.integers(0, most // 2))) for most in totals]


ORDERS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                TermName.PACK,
                TermName.SPREAD_PROVIDERS,
                TermName.PACK_PROVIDERS,
                TermName.PREFERRED,
                TermName.NEAR,
                TermName.FAR,
            ]
        ),
        st.sampled_from([1, 2, 9]),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda term: term[0],
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    devices(),
    st.sampled_from([0, 2, 4]),
    st.lists(st.integers(1, 9), min_size=10, max_size=10),
    st.booleans(),
    ORDERS,
    st.booleans(),
)
def test_two_more_groups_cost_as_much_more(some, nodes, amounts, are_alike, terms, isolated):
    forest = host(some, nodes)
    wanted = [amounts[0] if are_alike else amount for amount in amounts]
    with lowered(AT_ONCE):
        for groups in (4, 6, 8, 10):
            work = work_of(forest, wanted[:groups], terms, isolated=isolated)
            assert work <= allowed(groups, len(some)), (groups, work)


SPREAD, PACK = TermName.SPREAD_PROVIDERS, TermName.PACK_PROVIDERS
NEAR, FAR, PREFERRED = TermName.NEAR, TermName.FAR, TermName.PREFERRED

KNOWN = {
    "several in one device": ([(PACK, 1)], False),
    "unlike amounts in one device": ([(SPREAD, 1)], False),
    "near and apart": ([(NEAR, 1), (SPREAD, 1)], True),
    "near above all": ([(NEAR, 9), (SPREAD, 1)], False),
    "near below all": ([(NEAR, 1), (SPREAD, 9)], True),
    "near alone": ([(NEAR, 1)], True),
    "near in full devices": ([(NEAR, 1), (PACK, 1)], True),
    "far in one device": ([(FAR, 1), (PACK, 1)], False),
    "a trait in one device": ([(PREFERRED, 1), (PACK, 1)], False),
    "both ways at once": ([(SPREAD, 3), (PACK, 2)], False),
}


@pytest.mark.parametrize("case", KNOWN)
@pytest.mark.parametrize("amounts", [[1] * 10, [1, 3, 2, 3, 1, 2, 3, 3, 2, 1]], ids=str)
def test_known_cases_are_answered_with_the_usual_thresholds(case, amounts):
    terms, isolated = KNOWN[case]
    dice = random.Random("devices")
    some = [(total, dice.randrange(total // 2)) for total in dice.choices(range(4, 40), k=16)]
    forest = host(some, nodes=4)
    for groups in (6, 8, 10):
        work = work_of(forest, amounts[:groups], terms, isolated=isolated)
        at_once = thresholds.LOOSE_CANDIDATES + thresholds.BEST_PAIRS
        assert work <= allowed(groups, len(some)) + at_once, groups


class LeftOpenError(Exception):
    """A partial candidate was not bounded exactly."""


def test_where_all_amounts_are_unlike_it_is_bin_packing_and_the_deadline_bounds_it(monkeypatch):
    """Devices that are to be filled by as many amounts as groups: whether it can be done is NP-hard.

    What ten of them are worth together is added up all the same. Of more each is bounded by itself, and
    as everywhere the deadline ends what takes too long.
    """
    of_options = Completions.of_options
    judged = []

    def noted(completions, partial, slot):
        found = of_options(completions, partial, slot)
        if found is None:
            raise LeftOpenError
        judged.append(found)
        return found

    monkeypatch.setattr(Completions, "of_options", noted)
    forest = host([(60, at) for at in range(16)], nodes=0)
    with lowered(AT_ONCE):
        work_of(forest, range(1, 11), [(PACK, 1)], isolated=False)
        assert judged
        with pytest.raises(LeftOpenError):
            work_of(forest, range(1, 17), [(PACK, 1)], isolated=False)
