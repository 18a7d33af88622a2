# SPDX-License-Identifier: Apache-2.0
"""In a small world a plan of moves is the best of all plans (contract page 101, section 5)."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from tests.properties.forest_adapter import (
    FoundCandidates,
    ask,
    by_provider,
    candidate_request,
    forest_of,
)
from tests.reference.candidates import SHARING, Reference
from tests.reference.counts import count_everywhere
from tests.reference.moves import Consumer, Model, Question, Rule
from tests.reference.world import Group, Provider, Request, Stock, World, uuid_of
from tests.tiers import count_worlds
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.planning.consumers import PlannedConsumer
from treeclaim.forest.planning.moves.planner import find_move_plan
from treeclaim.model.extension import planning as model
from treeclaim.model.extension.planning import PlanRule

WORLDS = count_worlds(60)
MOST_OPTIONS = 16


def world_of(chance):
    """Hosts, some with nodes, and sometimes pools that they share."""
    providers = []
    has_pools = chance.random() < 0.35
    for number in range(chance.choice([2, 3, 3, 4])):
        name = f"h{number}"
        stock = {"VCPU": Stock(chance.randint(2, 5)), "MEMORY_MB": Stock(chance.randint(3, 8))}
        traits = frozenset({"HW_NUMA_ROOT"} if chance.random() < 0.5 else ())
        aggregates = frozenset(name for name in "AB" if chance.random() < 0.6)
        if chance.random() < 0.2:
            vcpu = stock.pop("VCPU").total
            providers.append(Provider(name, None, stock, traits, aggregates))
            providers += [
                Provider(f"{name}n{node}", name, {"VCPU": Stock(vcpu)}) for node in range(2)
            ]
        else:
            providers.append(Provider(name, None, stock, traits, aggregates))
    for number in range(chance.randint(1, 2) if has_pools else 0):
        disk = {"DISK_GB": Stock(chance.randint(3, 8))}
        aggregates = frozenset(chance.sample("AB", chance.randint(1, 2)))
        providers.append(Provider(f"pool{number}", None, disk, frozenset({SHARING}), aggregates))
    return World(tuple(providers)), has_pools


def request_of(chance, has_pools):
    resources = {"VCPU": chance.choice([1, 1, 2, 2, 3, 4])}
    if chance.random() < 0.4:
        resources["MEMORY_MB"] = chance.randint(1, 4)
    if has_pools and chance.random() < 0.6:
        resources["DISK_GB"] = chance.randint(1, 3)
    required = (frozenset({"HW_NUMA_ROOT"}),) if chance.random() < 0.15 and not has_pools else ()
    order = (("pack", (), 1),) if chance.random() < 0.3 else ()
    return Request((Group("", resources, required=required),), order=order)


def listed(world, request):
    """All candidates as {(provider, class): units}; those that give the same once."""
    candidates = FoundCandidates(world, ask(forest_of(world), request)).listed
    amounts = []
    for alloc, _ in candidates:
        cells = Counter()
        for provider, name, n in alloc:
            cells[provider, name] += n
        if cells not in amounts:
            amounts.append(cells)
    return [dict(cells) for cells in amounts]


def using(world, used):
    """The world with other units used."""
    return world.using(lambda p, c, _: used.get((p, c), 0))


def question_of(seed):
    """A question: of any world, or of one in which consumers are in each other's way."""
    chance = random.Random(seed)
    return any_question(chance) if chance.random() < 0.5 else tight_question(chance)


def tight_question(chance):
    """A question for a world with just as much room in all as is needed, or little more."""
    count, size = chance.randint(3, 4), chance.randint(3, 5)
    hosts = [
        Provider(f"h{number}", None, {"VCPU": Stock(size)}, aggregates=frozenset("AB"[number % 2]))
        for number in range(count)
    ]
    requests = {n: Request((Group("", {"VCPU": n}),)) for n in range(1, size + 1)}
    free_amounts = dict.fromkeys(range(count), size)
    consumers = []
    for number in range(chance.randint(count, 6)):
        units = chance.choice([1, 1, 2, 2, 3])
        places = [host for host, n in free_amounts.items() if n >= units]
        if places and sum(free_amounts.values()) - units >= size - 1:
            host = chance.choice(places)
            free_amounts[host] -= units
            cells = {(f"h{host}", "VCPU"): units}
            movable = chance.random() < 0.93
            consumers.append(Consumer(f"c{number}", cells, (requests[units],), movable))
    names = [consumer.name for consumer in consumers]
    rules = tuple(rule_of(chance, names) for _ in range(chance.choice([0, 0, 0, 1])))
    question = Question(World(tuple(hosts)), consumers, rules=rules)
    question = replace(
        question, max_moves=chance.randint(2, 6), both_at_once=chance.random() < 0.6
    )
    goal = chance.choice(["empty", "fit", "keep"])
    if goal == "empty":
        host = min(free_amounts, key=lambda name: (free_amounts[name] == size, chance.random()))
        return replace(question, emptied=frozenset({f"h{host}"}))
    units = chance.randint(max(2, size - 1), size)
    if goal == "fit":
        fits = sum(n // units for n in free_amounts.values())
        return replace(question, fit=(requests[units], fits + 1))
    mix = ((requests[units], chance.randint(2, 5)), (requests[2], 1))
    return replace(question, mix=mix, empty_trees=chance.random() < 0.5)


def any_question(chance):
    """A world with consumers where there was room for them, and a question."""
    world, has_pools = world_of(chance)
    requests = [request_of(chance, has_pools) for _ in range(chance.randint(2, 3))]
    used = Counter()
    consumers = []
    for number in range(chance.randint(3, 6)):
        alternatives = tuple(
            chance.sample(requests, 1 if chance.random() < 0.8 else len(requests))
        )
        places = listed(using(world, used), alternatives[0])
        if not places:
            continue
        # Often in the first place: so some host has room for the allocations in others.
        cells = places[0] if chance.random() < 0.3 else chance.choice(places)
        used.update(cells)
        consumer = Consumer(f"c{number}", cells, alternatives)
        kind = chance.random()
        if kind < 0.1:
            consumer = replace(consumer, is_movable=False)
        elif kind < 0.15:
            consumer = replace(consumer, requests=())
        elif kind < 0.25:
            consumer = replace(consumer, requests=(), is_hold=True, is_movable=False)
        elif kind < 0.4:
            cell = chance.choice(list(cells))
            drawn_amounts = {("hold", *cell): chance.randint(1, cells[cell])}
            consumer = replace(consumer, drawn_amounts=drawn_amounts)
        consumers.append(consumer)
    reference = Reference(world)
    names = [consumer.name for consumer in consumers]
    goal = chance.choice(["empty", "empty", "fit", "keep"])
    question = Question(
        world,
        consumers,
        rules=tuple(rule_of(chance, names) for _ in range(chance.choice([0, 0, 1, 2])) if names),
        max_moves=chance.choice([0, 1, 2, 3, 4, 4, 5]),
        both_at_once=chance.random() < 0.5,
    )
    if goal == "empty":
        in_use = sorted({reference.root(p) for each in consumers for p, _ in each.held_amounts})
        in_use = in_use or reference.roots
        count = min(len(in_use), chance.choice([1, 1, 1, 2]))
        return replace(question, emptied=frozenset(chance.sample(in_use, count)))
    if goal == "fit":
        request = request_of(chance, has_pools)
        fits = fits_in(world)(request, used)
        return replace(question, fit=(request, fits + chance.choice([0, 1, 1, 2])))
    mix = tuple((request_of(chance, has_pools), chance.randint(1, 4)) for _ in range(2))
    return replace(question, mix=mix, empty_trees=chance.random() < 0.5)


def rule_of(chance, names):
    members = tuple(chance.sample(names, chance.randint(1, len(names))))
    domains = chance.choice([None, None, ("A", "B")])
    return Rule(domains, members, chance.choice([1, 2]))


def fits_in(world):
    """Counts what fits, once for each state."""
    counts_by_key = {}

    def fits(request, used):
        key = id(request), frozenset((cell, n) for cell, n in used.items() if n)
        if key not in counts_by_key:
            forest = forest_of(using(world, used))
            capacity = count_capacity(
                forest, candidate_request(request), CapacityLimits(None, 0), Budget()
            )
            counts_by_key[key] = capacity["fits"]
        return counts_by_key[key]

    return fits


def counts_in(world):
    """Counts a request in all trees, once for each state."""
    counts_by_key = {}

    def count(request, used):
        key = id(request), frozenset((cell, n) for cell, n in used.items() if n)
        if key not in counts_by_key:
            counts_by_key[key] = count_everywhere(using(world, used), request)
        return counts_by_key[key]

    return count


def model_of(question):
    used = Counter()
    for consumer in question.consumers:
        if not (consumer.is_movable and consumer.requests):
            used.update(consumer.held_amounts)
    freed = using(question.world, used)
    candidates_by_id = {}

    def candidates(request):
        if id(request) not in candidates_by_id:
            candidates_by_id[id(request)] = listed(freed, request)
        return candidates_by_id[id(request)]

    return Model(question, candidates, fits_in(question.world), counts_in(question.world))


def occupied(world, consumers):
    """Return the world with the allocations of the consumers."""
    used = Counter()
    for consumer in consumers:
        used.update(consumer.held_amounts)
    return using(world, used)


def planned(consumer):
    """Return a consumer as plans see it."""
    return PlannedConsumer(
        uuid_of(consumer.name),
        "p",
        "TREECLAIM_HOLD" if consumer.is_hold else "t",
        7,
        by_provider(consumer.held_amounts),
        tuple(map(candidate_request, consumer.requests)),
        tuple(range(len(consumer.requests))),
        drawn_by_hold(consumer.drawn_amounts),
        consumer.is_hold,
    )


def answer_to(question, budget=None):
    """The plan that is made."""
    forest = forest_of(occupied(question.world, question.consumers))
    consumers = list(map(planned, question.consumers))
    if question.fit is not None:
        goal: model.Goal = model.CapacityGoal(candidate_request(question.fit[0]), question.fit[1])
    elif question.mix:
        mix = tuple((candidate_request(request), weight) for request, weight in question.mix)
        goal = model.MixGoal(mix, question.empty_trees)
    else:
        goal = model.EvacuationGoal(tuple(map(uuid_of, question.emptied)))
    call = model.MovesCall(
        goal,
        model.MovableConsumers(
            excepted=frozenset(
                uuid_of(each.name) for each in question.consumers if not each.is_movable
            )
        ),
        tuple(
            PlanRule(
                None if rule.domains is None else tuple(map(uuid_of, rule.domains)),
                frozenset(map(uuid_of, rule.members)),
                rule.most,
            )
            for rule in question.rules
        ),
        question.max_moves,
        question.both_at_once,
    )
    return find_move_plan(forest, consumers, call, budget or Budget())


def drawn_by_hold(amounts_by_cell):
    drawn_amounts = {}
    for (hold, provider, name), n in amounts_by_cell.items():
        drawn_amounts.setdefault(uuid_of(hold), {}).setdefault(uuid_of(provider), {})[name] = n
    return drawn_amounts


def carried_out(question, truth, answer):
    """The state after the moves, each of which is legal when its turn comes."""
    provider_names = {uuid_of(each.name): each.name for each in question.world.providers}
    consumer_names = {uuid_of(each.name): each.name for each in question.consumers}
    moved = {}
    for move in answer["moves"]:
        name = consumer_names[move["consumer"]]
        option = {
            (provider_names[provider], resource_class): n
            for provider, allocation in move["to"].items()
            for resource_class, n in allocation["resources"].items()
        }
        assert name not in moved
        assert option in truth.options[name]
        assert truth.is_legal(moved, name, option)
        moved[name] = option
    return moved


def compare(question):
    truth = model_of(question)
    answer = answer_to(question)
    moved = carried_out(question, truth, answer)
    assert len(moved) <= question.max_moves
    value = truth.value(moved)
    before, after = answer["before"], answer["after"]
    assert before["empty_trees"] == truth.empty_trees({})
    assert after["empty_trees"] == truth.empty_trees(moved)
    if not question.mix:
        assert answer["reached"] == truth.reached(value)
    if question.emptied:
        assert (before["left"], after["left"]) == (truth.count_left({}), truth.count_left(moved))
        assert len(answer["stuck"]) == after["left"]
    if any(len(options) > MOST_OPTIONS for options in truth.options.values()):
        return
    best = truth.best()
    if best is None:
        return
    assert answer["complete"]
    outcome = value, len(moved)
    if question.fit is not None and not is_packed_as_placed(question):
        assert_proofs_are_true(question, truth, answer, best, outcome)
        return
    if not (answer["optimal"] or answer["proven"]):
        # Only the order of the moves may keep a plan from being proven.
        assert truth.best(200_000, in_order=False) != best
        assert_proofs_are_true(question, truth, answer, best, outcome)
        return
    assert outcome == best if truth.reached(best[0]) or question.mix else value == best[0], answer
    assert answer["optimal"] == (truth.reached(value) or bool(question.mix))
    assert answer["at_least"] == (None if question.mix else len(moved)) or answer["proven"]


def is_packed_as_placed(question):
    """Return whether placing consumers one after the other leaves no room that could be packed."""
    (group,) = question.fit[0].groups
    return len(group.resources) == 1


def assert_proofs_are_true(question, truth, answer, best, outcome):
    """Nothing that is called proven is wrong."""
    if question.mix:
        assert not answer["optimal"] or outcome[0] == best[0]
        return
    if truth.reached(best[0]):
        assert answer["at_least"] <= best[1]
        assert not answer["proven"]
        assert not answer["optimal"] or outcome == best
    else:
        assert not answer["optimal"]


@pytest.mark.parametrize("seed", range(WORLDS))
def test_plan_of_a_small_world_is_optimal(seed):
    compare(question_of(seed))
