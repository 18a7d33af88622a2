# SPDX-License-Identifier: Apache-2.0
"""Rules on domains, judged for all kinds of trees at once, say what each of them says."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forest.building import forest_of, provider_uuid, record
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.domains import AggregateDomains, Emptiest, TreeDomains, keeps

RACKS = ("r0", "r1", "r2")


@st.composite
def occupied(draw):
    """Consumers of each domain, and which of these had a candidate."""
    counts = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    eligible = draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts)))
    return np.array(counts), np.array(eligible)


def least(counts, eligible):
    """How many consumers the emptiest domain has; 0 if no domain had a candidate."""
    return min(counts[eligible].tolist(), default=0)


def test_the_emptiest_domain_is_that_after_one_more_consumer():
    """All there is of three domains: where only some of the emptiest get one more, too."""
    for counts, eligible, gets in product(
        *(product(some, repeat=3) for some in (range(3), *[(False, True)] * 2))
    ):
        occupied, judged = np.array(counts), np.array(eligible)
        domains = set(np.flatnonzero(gets).tolist())
        emptiest = Emptiest(occupied, judged)
        assert emptiest.now == least(occupied, judged)
        assert emptiest.after(domains) == least(occupied + np.array(gets), judged)


@given(occupied(), st.integers(1, 2), st.data())
def test_a_candidate_keeps_a_rule_on_skew_if_no_domain_of_it_gets_beyond(occupied, most, data):
    counts, eligible = occupied
    domains = data.draw(st.sets(st.integers(0, len(counts) - 1)))
    more = counts.copy()
    more[list(domains)] += 1
    allowed = all(more[domain] <= most + least(more, eligible) for domain in domains)
    assert keeps(domains, counts, most, Emptiest(counts, eligible)) == (bool(domains) and allowed)


@st.composite
def racked(draw):
    """The racks of some hosts, with consumers in each rack and which of these had a candidate."""
    hosts = draw(st.lists(st.sets(st.sampled_from(RACKS), max_size=2), min_size=1, max_size=4))
    counts = draw(st.lists(st.integers(0, 2), min_size=3, max_size=3))
    eligible = draw(st.lists(st.booleans(), min_size=3, max_size=3))
    return hosts, np.array(counts), np.array(eligible)


@given(racked(), st.integers(1, 2), st.booleans())
def test_kinds_of_trees_are_judged_as_single_candidates(racked, most, skewed):
    hosts, counts, eligible = racked
    forest = forest_of([record(at, aggregates=racks) for at, racks in enumerate(hosts, 1)])
    domains = AggregateDomains(forest, RACKS, Budget())
    emptiest = Emptiest(counts, eligible) if skewed else None
    fits = domains.fit(counts, most, emptiest) & domains.in_some
    assert [bool(fits[kind]) for kind in domains.kind] == [
        keeps(domains.containing([tree]), counts, most, emptiest) for tree in range(len(hosts))
    ]
    for domain in range(len(RACKS)):
        mask = np.ones(len(hosts), dtype=np.bool_)
        domains.close(domain, mask)
        assert mask.tolist() == [RACKS[domain] not in racks for racks in hosts]
        kinds = domains.with_domain[domain]
        assert [int(kind) in kinds for kind in domains.kind] == [
            RACKS[domain] in racks for racks in hosts
        ]


@pytest.mark.parametrize("skewed", [True, False])
@given(occupied(), st.integers(1, 2))
def test_trees_are_judged_as_single_candidates(skewed, occupied, most):
    counts, eligible = occupied
    domains = TreeDomains(forest_of([record(at + 1) for at in range(len(counts))]))
    # Whoever is looked at had a candidate.
    emptiest = Emptiest(counts, eligible) if skewed else None
    judged = domains.fit(counts, most, emptiest)
    for tree in np.flatnonzero(eligible).tolist():
        alone = Emptiest(counts, eligible).now if skewed else 0
        assert bool(judged[tree]) == bool(counts[tree] + 1 <= most + alone)


def test_trees_of_one_candidate_are_tried_by_uuid():
    forest = forest_of([record(2), record(1), record(3)])
    domains = TreeDomains(forest)
    row = [forest.uuid_of(int(forest.order.row[forest.order.roots[tree]])) for tree in range(3)]
    tried = domains.order(forest, [2, 1, 0])
    assert [row[tree] for tree in tried] == [provider_uuid(number) for number in (1, 2, 3)]
