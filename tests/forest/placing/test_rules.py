# SPDX-License-Identifier: Apache-2.0
"""Rules of placements are kept as contract page 98, section 4.2, defines them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.forest.building import forest_of, provider_uuid, record
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.rules import Domains, RuleState
from treeclaim.model.extension.placing import Rule

RACKS = ("r0", "r1", "r2")


@st.composite
def occupied(draw):
    """The domains of some hosts, the hosts of consumers, and which domains are eligible."""
    racks = draw(st.lists(st.sets(st.sampled_from(RACKS), max_size=2), min_size=1, max_size=4))
    are_trees = draw(st.booleans())
    domains = [
        {at} if are_trees else set(map(RACKS.index, names)) for at, names in enumerate(racks)
    ]
    consumers = draw(st.lists(st.integers(0, len(racks) - 1), max_size=6))
    count = len(racks) if are_trees else len(RACKS)
    eligible = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return racks, None if are_trees else RACKS, domains, consumers, np.array(eligible)


def keeps(rule, counts, domains, eligible):
    """Return whether one more consumer in some domains keeps a rule."""
    after = counts.copy()
    after[list(domains)] += 1
    if rule.max_skew is None:
        most = rule.max_per_domain
    else:
        most = rule.max_skew + min(after[eligible].tolist(), default=0)
    return bool(domains) and all(after[domain] <= most for domain in domains)


@given(occupied(), st.sampled_from(["max_per_domain", "max_skew"]), st.integers(1, 2), st.data())
def test_no_domain_gets_more_consumers_than_a_rule_permits(occupied, kind, most, data):
    racks, names, domains, consumers, eligible = occupied
    forest = forest_of([record(at, aggregates=names) for at, names in enumerate(racks, 1)])
    rule = Rule(names, **{kind: most})
    state = RuleState(0, rule, Domains(forest, names, Budget()))
    counts = np.zeros(len(eligible), dtype=np.int64)
    for tree in consumers:
        state.add([tree])
        counts[list(domains[tree])] += 1
    assert state.mask({0: eligible}).tolist() == [
        keeps(rule, counts, domain, eligible) for domain in domains
    ]
    trees = data.draw(st.sets(st.integers(0, len(racks) - 1), min_size=1))
    every = set.union(*(domains[tree] for tree in trees))
    assert state.keeps(trees, {0: eligible}) == keeps(rule, counts, every, eligible)


def test_trees_of_one_candidate_are_tried_by_uuid():
    forest = forest_of([record(2), record(1), record(3)])
    row = [forest.uuid_of(int(forest.order.roots[tree])) for tree in range(3)]
    tried = Domains(forest, None, Budget()).in_order([2, 1, 0])
    assert [row[tree] for tree in tried] == [provider_uuid(number) for number in (1, 2, 3)]
