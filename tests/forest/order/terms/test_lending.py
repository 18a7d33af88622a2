# SPDX-License-Identifier: Apache-2.0
"""How full candidates become is bounded where several slots may be lent something.

No candidate is fuller, or emptier, than what it grew out of was said to become. And it is close: a search
for the fullest ones does not try all ways in which pools may serve the groups.
"""

import random

import numpy as np
import pytest

from tests.forest.building import forest_of, record
from treeclaim.forest.bounds.budget import UNBOUNDED
from treeclaim.forest.order.terms.making import value_of
from treeclaim.forest.order.terms.pack import PackOfClass
from treeclaim.forest.order.terms.term import Partial
from treeclaim.forest.order.totals import totals_of
from treeclaim.forest.search import search
from treeclaim.forest.solve.combine import combined_under
from treeclaim.forest.solve.partial.combiner import Combiner
from treeclaim.forest.solve.relate import relate
from treeclaim.model.extension.order import Order, Term, TermName
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.request import CandidateRequest, RequestGroup, SearchOptions

POOL = "DISK_GB"
AGGREGATES = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(2)]
MOST = 10_000
"""Partial candidates that are looked at for some of sixteen groups' candidates; there are 8^16 ways."""


def ordered(name):
    """An order by one term."""
    return Order((Term(name, (POOL,)),))


def cloud(draw):
    """Some hosts, perhaps with disks of their own, and pools that lend to some of them."""

    def disk():
        return {POOL: (draw.randint(4, 9), draw.randint(0, 3))}

    records = []
    for host in range(1, draw.randint(2, 4)):
        own = disk() if draw.random() < 0.4 else {}
        shared = draw.sample(AGGREGATES, draw.randint(0, 2))
        records.append(record(host, inventories={"VCPU": 8, **own}, aggregates=shared))
    for pool in range(10, 10 + draw.randint(1, 3)):
        shared = draw.sample(AGGREGATES, draw.randint(1, 2))
        top = record(pool, inventories=disk(), traits=[SHARING_TRAIT], aggregates=shared)
        records.append(top)
        if draw.random() < 0.3:
            records.append(
                record(pool + 50, pool, pool, disk(), [SHARING_TRAIT], draw.sample(AGGREGATES, 1))
            )
    return forest_of(sorted(records, key=lambda one: one.id))


def asked(draw):
    """Groups of some amounts, with or without a host."""
    suffixes = [f"_{number}" for number in range(draw.randint(1, 3))]
    groups = [RequestGroup(suffix, {POOL: draw.randint(1, 4)}) for suffix in suffixes]
    if draw.random() < 0.5:
        groups.append(RequestGroup("", {"VCPU": 1}))
    return CandidateRequest(
        tuple(groups), isolated=frozenset(suffixes if draw.random() < 0.3 else ())
    )


@pytest.mark.parametrize("seed", range(150))
def test_no_candidate_is_beyond_what_it_grew_out_of(seed):
    draw = random.Random(seed)
    forest = cloud(draw)
    problem = relate(forest, asked(draw), SearchOptions(), UNBOUNDED)
    order, totals = ordered(TermName.PACK), lambda name: totals_of(forest, name)
    (part,) = value_of(problem, order, totals).parts
    value = part.value
    assert isinstance(value, PackOfClass)
    slots = problem.rules.slots
    for block in combined_under(problem):
        exact = value.exact(block.chosen)
        assert (value.floor[block.tree] <= exact).all()
        assert (value.ceiling[block.tree] >= exact).all()
        for depth in range(len(slots) + 1):
            filled = frozenset(slots[:depth])
            chosen = np.where([slot in filled for slot in range(len(slots))], block.chosen, -9)
            partial = Partial(block.tree, chosen, filled)
            assert (value.bound(partial) >= exact).all()
            assert (value.least(partial) <= exact).all()
        if depth == len(slots):
            assert value.bound(partial).tolist() == exact.tolist()


@pytest.fixture
def looked_at(monkeypatch):
    """Counts the partial candidates that are looked at."""
    counts = []
    extended = Combiner.extended

    def counted(*arguments, **options):
        grown, taken = extended(*arguments, **options)
        counts.append(len(grown))
        assert sum(counts) < MOST, "this search goes through all combinations"
        return grown, taken

    monkeypatch.setattr(Combiner, "extended", counted)
    return counts


@pytest.mark.parametrize("is_isolated", [False, True])
@pytest.mark.parametrize("are_alike", [False, True])
@pytest.mark.parametrize("has_host", [False, True])
@pytest.mark.parametrize("name", [TermName.PACK, TermName.SPREAD])
def test_sixteen_groups_are_served_by_the_pools_at_once(
    looked_at, name, has_host, are_alike, is_isolated
):
    records = [
        record(host, inventories={"VCPU": 8}, aggregates=AGGREGATES) for host in range(1, 5)
    ]
    records += [
        record(
            10 + pool,
            inventories={POOL: (100, 0 if are_alike else 7 * (pool % 8))},
            traits=[SHARING_TRAIT],
            aggregates=AGGREGATES,
        )
        for pool in range(20 if is_isolated else 8)
    ]
    suffixes = [f"_{number}" for number in range(16)]
    groups = [RequestGroup(suffix, {POOL: 2}) for suffix in suffixes]
    request = CandidateRequest(
        (*groups, *([RequestGroup("", {"VCPU": 1})] if has_host else [])),
        isolated=frozenset(suffixes if is_isolated else ()),
        order=ordered(name),
        limit=5,
    )
    answer = search(forest_of(records), request, SearchOptions())
    b"".join(answer.pieces())
    assert answer.candidates == 5


@pytest.mark.parametrize("limit", [1, 10])
@pytest.mark.parametrize("amounts", [[1] * 12, [2] * 12, [1, 3, 2] * 4], ids=str)
@pytest.mark.parametrize("is_isolated", [False, True])
@pytest.mark.parametrize("has_own", [False, True])
@pytest.mark.parametrize("name", [TermName.PACK, TermName.SPREAD])
def test_pools_with_little_room_are_chosen_at_once(
    looked_at, name, has_own, is_isolated, amounts, limit
):
    """Whom they have room for counts as much as how full they are."""
    draw = random.Random("pools")
    records = [record(1, inventories={"VCPU": 64}, aggregates=AGGREGATES)]
    for number in range(12):
        total = draw.randint(10, 200)
        some = {POOL: (total, total - draw.randint(3, 6))}
        if has_own and number < 4:
            records.append(record(10 + number, 1, 1, some))
        else:
            pool = record(10 + number, None, None, some, [SHARING_TRAIT], AGGREGATES)
            records.append(pool)
    forest = forest_of(records)
    for count in (4, 8, 12):
        suffixes = [f"_{number}" for number in range(count)]
        groups = [
            RequestGroup(suffix, {POOL: amount})
            for suffix, amount in zip(suffixes, amounts, strict=False)
        ]
        request = CandidateRequest(
            (*groups, RequestGroup("", {"VCPU": 1})),
            isolated=frozenset(suffixes if is_isolated else ()),
            order=ordered(name),
            limit=limit,
        )
        looked_at.clear()
        answer = search(forest, request, SearchOptions())
        b"".join(answer.pieces())
        assert answer.candidates == limit
        assert sum(looked_at) < 1_300 + 4 * count * 12
