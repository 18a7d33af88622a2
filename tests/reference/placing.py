# SPDX-License-Identifier: Apache-2.0
"""Placing one consumer after the other by brute force: contract page 98, section 4, line by line.

`ordered` returns the page's order of a query, in the world of that moment.
"""

from collections import Counter
from dataclasses import dataclass, field

from tests.reference.candidates import Reference
from tests.reference.world import World, uuid_of

TREES = "tree"


@dataclass(frozen=True)
class Rule:
    """A rule; domains are "tree" or names of aggregates."""

    domains: str | tuple[str, ...]
    max_per_domain: int | None = None
    max_skew: int | None = None
    same_domain: bool = False
    other_consumers: tuple[str, ...] = ()
    requests: frozenset[int] | None = None
    soft: bool = False


@dataclass(frozen=True)
class ConsumerGroup:
    """Consumers that want the same."""

    alternatives: tuple
    consumers: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """A whole call; holders are {consumer: allocations as (provider, class, amount)}."""

    requests: tuple[ConsumerGroup, ...]
    rules: tuple[Rule, ...] = ()
    partial: bool = False
    holders: dict = field(default_factory=dict)


@dataclass
class Outcome:
    """The outcome of a call."""

    placed: dict = field(default_factory=dict)
    unplaced: list = field(default_factory=list)
    reached: int = 0
    world: World | None = None


def take_candidate(world, alloc):
    """The world where a candidate is taken."""
    amounts = {(p, c): n for p, c, n in alloc}
    return world.using(lambda p, c, used: used + amounts.get((p, c), 0))


class Placer:
    """Places the consumers of one call."""

    def __init__(self, world, call, ordered):
        self.world = world
        self.call = call
        self.ordered = ordered
        self.reference = Reference(world)

    def trees(self, alloc):
        """Return the trees of the taken amounts."""
        return self.reference.trees({p for p, _, _ in alloc})

    def domains(self, rule, trees):
        """The domains that some trees are in."""
        if rule.domains == TREES:
            return set(trees)
        return {a for a in rule.domains for tree in trees if a in self.reference.aggs(tree)}

    def concerns(self, rule, number):
        """Return whether a rule is for the consumers of a request."""
        return rule.requests is None or number in rule.requests

    def counted_from_the_start(self, rule):
        """Return the allocations that the rule counts when the call begins."""
        names = [
            consumer
            for number, request in enumerate(self.call.requests)
            if self.concerns(rule, number)
            for consumer in request.consumers
        ]
        return [
            self.call.holders[name]
            for name in (*names, *rule.other_consumers)
            if name in self.call.holders
        ]

    def place(self):
        """The outcome of the call."""
        affine = next((rule for rule in self.call.rules if rule.same_domain), None)
        if affine is None:
            return self.attempt(None)
        best = None
        for domain in self.list_domains(affine):
            if all(
                domain in self.domains(affine, self.trees(alloc))
                for alloc in self.counted_from_the_start(affine)
            ):
                outcome = self.attempt(domain)
                if not outcome.unplaced:
                    return outcome
                if best is None or outcome.reached > best.reached:
                    best = outcome
        return best or self.attempt("no domain")

    def list_domains(self, affine):
        """The domains in the order in which candidates of the first new consumer name them."""
        for number, request in enumerate(self.call.requests):
            new_consumers = [
                consumer for consumer in request.consumers if consumer not in self.call.holders
            ]
            if self.concerns(affine, number) and new_consumers:
                return self.list_domains_of(affine, request)
        return []

    def list_domains_of(self, affine, request):
        """The domains of the candidates of a request, in order."""
        domains_in_order = []
        for alternative in request.alternatives:
            for alloc, _ in self.ordered(self.world, alternative):
                new_domains = self.domains(affine, self.trees(alloc)) - set(domains_in_order)
                key = uuid_of if affine.domains == TREES else affine.domains.index
                domains_in_order += sorted(new_domains, key=key)
        return domains_in_order

    def attempt(self, domain):
        """Place all, where the rule that wants all in one wants this domain."""
        self.counts = [
            Counter(
                domain
                for alloc in self.counted_from_the_start(rule)
                for domain in self.domains(rule, self.trees(alloc))
            )
            for rule in self.call.rules
        ]
        outcome = Outcome(world=self.world)
        for number, request in enumerate(self.call.requests):
            for consumer in request.consumers:
                if consumer in self.call.holders:
                    outcome.placed[consumer] = None
                else:
                    ends = outcome.unplaced and not self.call.partial
                    candidate = None if ends else self.first(outcome.world, number, domain)
                    if candidate is None:
                        outcome.unplaced.append(consumer)
                    else:
                        outcome.placed[consumer] = candidate
                        self.take(outcome, number, candidate[1][0])
                outcome.reached += not outcome.unplaced
        return outcome

    def take(self, outcome, number, alloc):
        """Take a candidate."""
        outcome.world = take_candidate(outcome.world, alloc)
        for rule, counts in zip(self.call.rules, self.counts, strict=True):
            if self.concerns(rule, number):
                counts.update(self.domains(rule, self.trees(alloc)))

    def first(self, world, number, domain):
        """The alternative, its first candidate that keeps the rules, and the rules dropped."""
        soft = [at for at, rule in enumerate(self.call.rules) if rule.soft]
        soft = [at for at in soft if self.concerns(self.call.rules[at], number)]
        alternatives = self.call.requests[number].alternatives
        for drop in range(len(soft) + 1):
            dropped = soft[len(soft) - drop :]
            for at, alternative in enumerate(alternatives):
                for candidate in self.ordered(world, alternative):
                    if all(
                        self.keeps(rule_at, number, candidate[0], domain)
                        for rule_at, rule in enumerate(self.call.rules)
                        if self.concerns(rule, number) and rule_at not in dropped
                    ):
                        return at, candidate, sorted(dropped)
        return None

    def keeps(self, rule_at, number, alloc, domain):
        """Return whether a candidate keeps a rule."""
        rule = self.call.rules[rule_at]
        mine = self.domains(rule, self.trees(alloc))
        if rule.same_domain:
            return domain in mine
        then = self.counts[rule_at] + Counter(mine)
        if rule.max_per_domain is not None:
            return bool(mine) and all(
                then[eligible_domain] <= rule.max_per_domain for eligible_domain in mine
            )
        eligible = {
            domain
            for alternative in self.call.requests[number].alternatives
            for candidate, _ in self.ordered(self.world, alternative)
            for domain in self.domains(rule, self.trees(candidate))
        }
        emptiest = min((then[eligible_domain] for eligible_domain in eligible), default=0)
        return bool(mine) and all(
            then[eligible_domain] <= emptiest + rule.max_skew for eligible_domain in mine
        )
