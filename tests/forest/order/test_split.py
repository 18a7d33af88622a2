# SPDX-License-Identifier: Apache-2.0
"""Where amounts are divided and candidates ordered, only what can come first is divided."""

import random

import pytest

from tests.forest.building import answer_of, forest_of, provider_uuid, record
from treeclaim.forest.bounds import thresholds
from treeclaim.forest.order.split_scores import SplitScores
from treeclaim.model.extension.order import Order, Preference, Term, TermName
from treeclaim.model.request import CandidateRequest, RequestGroup, SplitPolicy

HOSTS = 60
NODES = 3


@pytest.fixture
def scored(monkeypatch):
    """The candidates with divisions that were scored."""
    found = []
    score_of = SplitScores.score

    def noted(scores, candidate):
        found.append(candidate)
        return score_of(scores, candidate)

    monkeypatch.setattr(SplitScores, "score", noted)
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


DEVICES = 16
TERMS = {
    "spread_providers": (Term(TermName.SPREAD_PROVIDERS, ()),),
    "pack_providers": (Term(TermName.PACK_PROVIDERS, ()),),
    "spread": (Term(TermName.SPREAD, ()),),
    "both": (Term(TermName.PACK, (), 2), Term(TermName.SPREAD_PROVIDERS, (), 3)),
}


def devices(amounts):
    """One host with devices that have amounts, of which something is used."""
    records = [record(1, inventories={"DISK_GB": 100})]
    records += [
        record(2 + at, 1, 1, {"CUSTOM_DEVICE": amount}) for at, amount in enumerate(amounts)
    ]
    return forest_of(records)


def divided(forest, terms, amount, limit, preferences=(), more=(), policy=SplitPolicy.PACK):
    """The first candidates of a divided amount with their scores, as they are answered."""
    groups = (RequestGroup("", {"CUSTOM_DEVICE": amount, "DISK_GB": 1}), *more)
    request = CandidateRequest(
        groups,
        can_split=frozenset({"CUSTOM_DEVICE"}),
        limit=limit,
        order=Order(terms, preferences),
        split_policy=policy,
    )
    return answer_of(forest, request)


@pytest.mark.parametrize("limit", [1, 10])
@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("kind", ["alike", "used"])
def test_few_divisions_of_many_are_scored(scored, kind, name, limit):
    """Of 8,008 ways to take 12 of 16 devices that have 2 left each."""
    amounts = {"alike": [2] * DEVICES, "used": [(2 + at, at) for at in range(DEVICES)]}[kind]
    divided(devices(amounts), TERMS[name], 12, limit)
    assert len(scored) <= thresholds.FEW_DIVISIONS + limit


@pytest.mark.parametrize("name", [TermName.MOST, TermName.LEAST])
def test_beside_what_is_divided_an_attribute_of_a_group_counts(scored, name):
    records = [record(1, inventories={"DISK_GB": 100})]
    records += [
        record(2 + at, 1, 1, {"CUSTOM_DEVICE": 2}, attributes={"gib": at}) for at in range(DEVICES)
    ]
    records += [record(98 + at, attributes={"gib": gib}) for at, gib in enumerate((-10, 30))]
    beside = [RequestGroup("_A", {"CUSTOM_DEVICE": 1})]
    answer = divided(forest_of(records), (Term(name, ("gib", "_A")),), 12, 5, more=beside)
    best = DEVICES - 1 if name is TermName.MOST else 0
    for candidate in answer["allocation_requests"]:
        assert candidate["mappings"]["_A"] == [provider_uuid(2 + best)]
    assert answer["scores"] == [0.625 if name is TermName.MOST else 0.75] * 5
    assert len(scored) <= thresholds.FEW_DIVISIONS + 5


@pytest.mark.parametrize("seed", range(60))
def test_the_first_divisions_are_those_of_the_whole_list(monkeypatch, seed):
    chance = random.Random(seed)
    totals = [chance.randint(1, 7) for _ in range(chance.randint(4, 9))]
    amounts = [(total, chance.randint(0, total - 1)) for total in totals]
    terms = tuple(
        Term(name, (), chance.choice([1, 1, 3]))
        for name in chance.sample(
            [
                *(TermName.SPREAD_PROVIDERS, TermName.PACK_PROVIDERS, TermName.SPREAD),
                *(TermName.PACK, TermName.PREFERRED),
            ],
            chance.choice([1, 1, 2, 3]),
        )
    )
    preferences = (Preference("", "CUSTOM_FAST"),)
    more = [RequestGroup("_A", {"CUSTOM_DEVICE": 1})][: chance.random() < 0.4]
    records = [record(1, inventories={"DISK_GB": 100})]
    for at, has in enumerate(amounts):
        traits = ["CUSTOM_FAST"] if chance.random() < 0.3 else []
        records.append(record(2 + at, 1, 1, {"CUSTOM_DEVICE": has}, traits=traits))
    forest = forest_of(records)
    free = sum(total - used for total, used in amounts)
    amount = chance.randint(1, max(1, free * 2 // 3))
    monkeypatch.setattr(thresholds, "FEW_DIVISIONS", 10**9)
    policy = chance.choice(list(SplitPolicy))
    whole = divided(forest, terms, amount, 1000, preferences, more, policy)
    monkeypatch.setattr(thresholds, "FEW_DIVISIONS", chance.choice([1, 1, 3]))
    limit = chance.choice([1, 2, 5, 20])
    found = divided(forest, terms, amount, limit, preferences, more, policy)
    for name in ("allocation_requests", "scores"):
        assert found[name] == whole[name][:limit]
