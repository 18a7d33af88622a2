# SPDX-License-Identifier: Apache-2.0
"""All plans of moves of a small world, tried one after the other (contract page 101, section 5).

Plain values: the claims of each consumer as {(provider, class): units}. Callers list candidates
and what fits.
"""

from collections import Counter
from dataclasses import dataclass, field

from tests.reference.candidates import Reference
from tests.reference.world import World


@dataclass
class Consumer:
    """A consumer: its units by (provider, class), what of them was drawn from which hold."""

    name: str
    held_amounts: dict
    requests: tuple = ()
    is_movable: bool = True
    is_hold: bool = False
    drawn_amounts: dict = field(default_factory=dict)
    """By (hold, provider, class)."""


@dataclass(frozen=True)
class Rule:
    """A rule: domains are None for trees, or aggregates."""

    domains: tuple | None
    members: tuple
    most: int


@dataclass
class Question:
    """A world, its consumers, and the goal of the moves."""

    world: World
    consumers: list
    emptied: frozenset = frozenset()
    """Roots."""
    fit: tuple | None = None
    """A request, and how many are to fit."""
    mix: tuple = ()
    """Requests with weights."""
    empty_trees: bool = False
    rules: tuple = ()
    max_moves: int = 3
    both_at_once: bool = True


class Model:
    """Decides which moves are legal, and the value of a state."""

    def __init__(self, question, candidates, fits, count):
        """Take the question.

        Args:
            question: The question.
            candidates: candidates(request): all candidates, as {(provider, class): units}, in a
                world where all that may move are gone.
            fits: fits(request, used): how many fit, with units used by (provider, class).
            count: count(request, used): the sum of the counts of all trees.
        """
        self.question = question
        self.fits = fits
        self.count = count
        self.reference = Reference(question.world)
        self.capacity = {
            (provider.name, name): self.reference.capacity(provider.name, name)
            for provider in question.world.providers
            for name in provider.stock
        }
        self.options = {
            consumer.name: [
                option
                for request in consumer.requests
                for option in candidates(request)
                if self.may_take(consumer, option)
            ]
            for consumer in question.consumers
            if consumer.is_movable and consumer.requests
        }
        self.consumers = {consumer.name: consumer for consumer in question.consumers}
        self.rules = question.rules

    def may_take(self, consumer, option):
        """Return whether the goal and the sharing providers permit such an allocation at all."""
        emptied = self.question.emptied
        if any(self.reference.root(provider) in emptied for provider, _ in option):
            return False
        had = {provider for provider, _ in consumer.held_amounts if provider in self.reference.S}
        if any(self.reference.root(provider) in emptied for provider in had):
            return True
        return all(provider not in self.reference.S or provider in had for provider, _ in option)

    def find_allocations(self, moved, name):
        """Return the allocations of a consumer in a state."""
        return dict(moved[name]) if name in moved else self.consumers[name].held_amounts

    def returned(self, moved):
        """Return the amounts that went back to holds in a state, by (hold, provider, class)."""
        result = Counter()
        for name, new_amounts in moved.items():
            remaining = Counter() if self.question.both_at_once else Counter(dict(new_amounts))
            for (hold, *cell), drawn_amount in self.consumers[name].drawn_amounts.items():
                stays = min(drawn_amount, remaining[tuple(cell)])
                remaining[tuple(cell)] -= stays
                result[hold, *cell] += drawn_amount - stays
        return +result

    def used(self, moved):
        """Units used in a state, by (provider, class)."""
        used = Counter()
        for name in self.consumers:
            used.update(self.find_allocations(moved, name))
        for (_, *cell), n in self.returned(moved).items():
            used[tuple(cell)] += n
        return used

    def domains(self, rule, held_amounts):
        """The domains with a consumer."""
        trees = self.reference.trees({provider for provider, _ in held_amounts})
        if rule.domains is None:
            return trees
        return {
            domain for domain in rule.domains for t in trees if domain in self.reference.aggs(t)
        }

    def is_legal(self, moved, name, option):
        """Return whether a consumer may be moved now."""
        consumer = self.consumers[name]
        used = self.used(moved)
        if not self.question.both_at_once:
            used.subtract(consumer.held_amounts)
        if any(self.capacity[cell] - used[cell] < n for cell, n in option.items()):
            return False
        for rule in self.rules:
            if name not in rule.members:
                continue
            new_domains = self.domains(rule, option)
            if not new_domains:
                return False
            for domain in new_domains - self.domains(rule, consumer.held_amounts):
                other_members = [
                    member
                    for member in rule.members
                    if member != name
                    and domain in self.domains(rule, self.find_allocations(moved, member))
                ]
                if len(other_members) >= rule.most:
                    return False
        return True

    def present(self, moved):
        """Return pairs of a root and a consumer in its tree."""
        placements = {
            (self.reference.root(provider), name)
            for name in self.consumers
            for provider, _ in self.find_allocations(moved, name)
        }
        return placements | {(self.reference.root(p), hold) for hold, p, _ in self.returned(moved)}

    def count_left(self, moved):
        """Return how many consumers are left in the trees that are to be empty."""
        emptied = self.question.emptied
        return len({name for tree, name in self.present(moved) if tree in emptied})

    def empty_trees(self, moved):
        """Return how many trees have no consumer."""
        return len(self.reference.roots) - len({tree for tree, _ in self.present(moved)})

    def value(self, moved):
        """Return the value of a state."""
        question = self.question
        if question.fit is not None:
            request, amount = question.fit
            return (min(self.fits(request, self.used(moved)), amount),)
        if question.mix:
            used = self.used(moved)
            fits = sum(
                weight * self.count(mix_request, used) for mix_request, weight in question.mix
            )
            return self.empty_trees(moved) * question.empty_trees, fits
        return (-self.count_left(moved),)

    def reached(self, value):
        """Return whether the goal is reached."""
        return value[0] >= (0 if self.question.fit is None else self.question.fit[1])

    def is_legal_at_the_end(self, moved):
        """Return whether a state keeps capacities and rules, however it is reached."""
        used = self.used(moved)
        arrived = {cell for amounts in moved.values() for cell in amounts}
        if any(used[cell] > self.capacity[cell] for cell in arrived):
            return False
        for rule in self.rules:
            for domain, count in self.members_in(rule, moved).items():
                if count > max(rule.most, self.members_in(rule, {})[domain]):
                    return False
        return True

    def members_in(self, rule, moved):
        """Return how many members of a rule are in each domain."""
        return Counter(
            domain
            for member in rule.members
            if self.find_allocations(moved, member)
            for domain in self.domains(rule, self.find_allocations(moved, member))
        )

    def best(self, most_states=20_000, *, in_order=True):
        """The greatest value of any plan, and the fewest moves for it; None where there are too many.

        Args:
            most_states: The most states with one number of moves.
            in_order: Whether each move must be legal after those before it; else only the end counts.
        """
        best = None
        states = {frozenset(): {}}
        for moves in range(self.question.max_moves + 1):
            for moved in states.values():
                if in_order or self.is_legal_at_the_end(moved):
                    value = self.value(moved)
                    if best is None or value > best[0]:
                        best = value, moves
            after = {}
            for state, moved in states.items():
                for name, options in self.options.items():
                    if name in moved:
                        continue
                    for option in options:
                        key = state | {(name, frozenset(option.items()))}
                        if key in after or (in_order and not self.is_legal(moved, name, option)):
                            continue
                        after[key] = {**moved, name: option}
                        if len(after) > most_states:
                            return None
            states = after
        return best
