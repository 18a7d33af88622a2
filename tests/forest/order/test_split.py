# SPDX-License-Identifier: Apache-2.0
"""Where amounts are divided and candidates ordered, only what can come first is divided."""

import pytest

from tests.forest.building import answer_of, forest_of, provider_uuid, record
from treeclaim.forest.order.split import SplitScores
from treeclaim.model.extension.order import Order, Preference, Term, TermName
from treeclaim.model.request import CandidateRequest, RequestGroup

HOSTS = 60
NODES = 3


@pytest.fixture
def scored(monkeypatch):
    """The candidates with divisions that were scored."""
    found = []
    score_of = SplitScores.of

    def noted(scores, candidate):
        found.append(candidate)
        return score_of(scores, candidate)

    monkeypatch.setattr(SplitScores, "of", noted)
    return found


def numbers(host):
    """The numbers of a host and of its nodes."""
    return [host * 10, *range(host * 10 + 1, host * 10 + 1 + NODES)]


@pytest.fixture
def forest():
    """Hosts with some nodes each, of which the one in the middle is the emptiest, and a fast one."""
    records = []
    for host in range(1, HOSTS + 1):
        root, *nodes = numbers(host)
        traits = ["CUSTOM_FAST"] if host == HOSTS // 3 else []
        records.append(record(root, inventories={"DISK_GB": 100}))
        used = abs(host - HOSTS // 2) / 10
        records += [
            record(node, root, root, {"VCPU": (64, int(used) + at)}, traits=traits)
            for at, node in enumerate(nodes)
        ]
    return forest_of(records)


def first(forest, term, preferences=(), limit=1):
    """The providers of the first candidates of all."""
    request = CandidateRequest(
        (RequestGroup("", {"VCPU": 100, "DISK_GB": 1}),),
        can_split=frozenset({"VCPU"}),
        limit=limit,
        order=Order((Term(term, ("a",) if term is TermName.SHUFFLE else ()),), preferences),
    )
    answer = answer_of(forest, request)
    return [set(candidate["allocations"]) for candidate in answer["allocation_requests"]]


@pytest.mark.parametrize("term", [TermName.SPREAD, TermName.PACK, TermName.SHUFFLE])
def test_only_trees_are_divided_that_may_come_first(forest, scored, term):
    first(forest, term)
    assert len(scored) <= 12 * NODES


def test_who_prefers_a_trait_has_only_those_divided_who_have_it(forest, scored):
    preferences = (Preference("", "CUSTOM_FAST"),)
    (found,) = first(forest, TermName.PREFERRED, preferences)
    assert found < {provider_uuid(number) for number in numbers(HOSTS // 3)}
    assert len(scored) == NODES


def test_all_are_divided_where_all_are_wanted(forest, scored):
    assert len(first(forest, TermName.SPREAD, limit=None)) == HOSTS * NODES
    assert len(scored) == HOSTS * NODES
