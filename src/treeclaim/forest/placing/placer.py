# SPDX-License-Identifier: Apache-2.0
"""Consumers placed one after the other (contract page 98, section 4)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.candidate import (
    Candidate,
    placement_of,
    roots_of,
    rows_of,
    trees_of,
)
from treeclaim.forest.placing.queries import Query
from treeclaim.forest.placing.room import Room
from treeclaim.forest.placing.rules import Domains, EligibleDomains, RuleState, rules_in_force
from treeclaim.forest.placing.tree_counts import bounds_by_tree
from treeclaim.forest.table.columns import GREATEST, Integers, Mask, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.placing import Holder, Placement, Placing, Rule


@dataclass
class Attempt:
    """The progress of a call.

    Attributes:
        placed: By consumer, including those that existed before.
        unplaced: Consumers without a place, in the order of the call.
        reached: Number of consumers that were tried before the first without a place.
        domain: The domain that was tried for `same_domain`; None without such a rule, or if none may be tried.
        request: Number of the request of the first consumer without a place; None if all are placed.
    """

    placed: dict[str, Placement] = field(default_factory=dict)
    unplaced: list[str] = field(default_factory=list)
    reached: int = 0
    domain: int | None = None
    request: int | None = None


class Placer:
    """Places the consumers of one call in one picture of the Forest."""

    def __init__(
        self,
        forest: Forest,
        placing: Placing,
        holders: Mapping[str, Holder],
        budget: Budget,
    ) -> None:
        """Take the inputs of the call.

        Args:
            forest: The Forest; it is not changed.
            placing: The call.
            holders: The consumers with allocations: of the call, and others that its rules count.
            budget: The time and memory of the whole call.
        """
        self.forest = forest
        self.placing = placing
        self.holders = holders
        self.budget = budget
        self._rules = rules_in_force(forest, placing.rules, budget)
        self._eligible: dict[int, dict[int, Mask]] = {}
        self._begin = Room(forest, budget)

    def place_all(self) -> Attempt:
        """Place all consumers; where a rule is for one domain, try one after the other."""
        affine = next(((rule, domains) for rule, domains in self._rules if rule.same_domain), None)
        if affine is None:
            return self._attempt(None, Room(self.forest, self.budget))
        best: Attempt | None = None
        room = Room(self.forest, self.budget)
        most: Rows | None = None
        # All consumers that count from the start must be in the domain.
        open_domains = np.ones(affine[1].count, dtype=np.bool_)
        for holder in self._counted_holders(affine[0]):
            domains = affine[1].containing(self._trees_of(holder))
            open_domains[np.setdiff1d(np.arange(affine[1].count), domains)] = False
        for domain in self._domains_in_order(*affine, open_domains):
            attempt = self._attempt(domain, room)
            if not attempt.unplaced:
                return attempt
            room.remove_placed()
            if best is None or attempt.reached > best.reached:
                best = attempt
                most = self._most_in(*affine) if most is None else most
                # If the call gets no further, it is neither placed nor explained further.
                open_domains &= most > best.reached
        return self._attempt(None, room) if best is None else best

    def _most_in(self, affine: Rule, domains: Domains) -> Rows:
        """Return for each domain how many consumers are placed at most before one finds no place."""
        draws = any(request.from_holds for request in self.placing.requests)
        if draws:
            # More than what is free may be taken.
            return np.full(domains.count, GREATEST)
        # The place of each new consumer in the call; the end follows the last one.
        places: list[int] = []
        placed = np.zeros(domains.count, dtype=np.int64)
        is_open = np.ones(domains.count, dtype=np.bool_)
        place_count = 0
        for number, request in enumerate(self.placing.requests):
            names = enumerate(request.consumers, place_count)
            new = [place for place, name in names if name not in self.holders]
            place_count += len(request.consumers)
            places += new
            fits = np.full(domains.count, len(new))
            if number in affine.requests:
                bounds = [self._at_most(query, domains) for query in self._at_begin(number)]
                np.minimum(fits, np.add.reduce(bounds), out=fits)
            placed[is_open] += fits[is_open]
            is_open &= fits >= len(new)
        return np.array([*places, place_count], dtype=np.int64)[placed]

    def _at_most(self, query: Query, domains: Domains) -> Integers:
        """Return a bound of the consumers of a query that fit into each domain, if there were no others."""
        if not query.are_apart:
            return np.full(domains.count, GREATEST)
        return domains.sums(bounds_by_tree(query.forest, query.request, self.budget))

    # -- one domain after the other --------------------------------------------------------------

    def _counted_holders(self, rule: Rule) -> list[Holder]:
        """Return those who hold something already and count for a rule."""
        names = [consumer for number, consumer in self._consumers() if number in rule.requests]
        counted = (*names, *rule.others)
        return [self.holders[consumer] for consumer in counted if consumer in self.holders]

    def _domains_in_order(
        self, affine: Rule, domains: Domains, open_domains: Mask
    ) -> Iterator[int]:
        """Yield domains in the order in which the first new consumer's candidates reach them.

        Args:
            affine: The rule.
            domains: Its domains.
            open_domains: Domains that may still be tried; the callee changes it.
        """
        first = self._first_new(affine)
        if first is None:
            return
        request = self.placing.requests[first]
        for alternative in request.alternatives:
            while open_domains.any():
                self.budget.check()
                query = self._begin.pool(request).query(alternative)
                with self.budget.scope():
                    candidate = query.first(
                        domains.with_any(open_domains),
                        lambda trees: bool(open_domains[list(domains.containing(trees))].any()),
                    )
                if candidate is None:
                    break
                visited_domains = [
                    domain
                    for domain in domains.containing(candidate.trees)
                    if open_domains[domain]
                ]
                open_domains[visited_domains] = False
                yield from domains.in_order(visited_domains)

    def _first_new(self, rule: Rule) -> int | None:
        """Return the number of the request of the rule's first consumer that holds nothing."""
        new = (number for number, consumer in self._consumers() if consumer not in self.holders)
        return next((number for number in new if number in rule.requests), None)

    # -- one attempt -----------------------------------------------------------------------------

    def _attempt(self, domain: int | None, room: Room) -> Attempt:
        """Place all consumers, with `same_domain` in a domain."""
        attempt, rules = Attempt(domain=domain), self._rule_states(domain)
        for number, consumer in self._consumers():
            if consumer not in self.holders and attempt.unplaced and not self.placing.partial:
                attempt.unplaced.append(consumer)
                continue
            placement = self._place(room, rules, number, consumer)
            if placement is not None:
                attempt.placed[consumer] = placement
                attempt.reached += not attempt.unplaced
                continue
            attempt.request = number if attempt.request is None else attempt.request
            attempt.unplaced.append(consumer)
        return attempt

    def _consumers(self) -> Iterator[tuple[int, str]]:
        """Yield the consumers in the order of the call, with the numbers of their requests."""
        for number, request in enumerate(self.placing.requests):
            for consumer in request.consumers:
                yield number, consumer

    def failure_of(self, attempt: Attempt) -> tuple[Forest, Sequence[RuleState], EligibleDomains]:
        """Place the consumers before the first unplaced one once more.

        Returns:
            The used amounts, and the amounts of holds from which that consumer may not draw; its rules without the
            soft ones, which are dropped; for rules on skew, the domains that had a candidate at the beginning.
        """
        room, rules = Room(self.forest, self.budget), self._rule_states(attempt.domain)
        for number, consumer in self._consumers():
            if consumer == attempt.unplaced[0]:
                break
            self._place(room, rules, number, consumer)
        strict = [rule for rule in rules if rule.concerns(number) and not rule.rule.soft]
        request = self.placing.requests[number]
        query = room.pool(request).query(request.alternatives[0])
        forest = query.forest.viewed(held=room.held(request.from_holds))
        return forest, strict, self._eligible_domains(number, strict)

    def _rule_states(self, domain: int | None) -> list[RuleState]:
        """Return the rules with the consumers that count from the start; see `RuleState` for the domain."""
        states = [
            RuleState(number, rule, domains, domain)
            for number, (rule, domains) in enumerate(self._rules)
        ]
        for state in states:
            for holder in self._counted_holders(state.rule):
                state.add(self._trees_of(holder))
        return states

    def _place(
        self, room: Room, rules: Sequence[RuleState], number: int, consumer: str
    ) -> Placement | None:
        """Find a candidate for a consumer that holds nothing yet, and take the room."""
        self.budget.check()
        if consumer in self.holders:
            return self._of_holder(consumer)
        place = self._find_candidate(room, rules, number)
        if place is None:
            return None
        alternative, candidate, dropped = place
        room.place(candidate.allocations, self.placing.requests[number].from_holds)
        for rule in rules:
            if rule.concerns(number):
                rule.add(candidate.trees)
        return placement_of(self.forest, consumer, alternative, candidate, dropped)

    def _find_candidate(
        self, room: Room, rules: Sequence[RuleState], number: int
    ) -> tuple[int, Candidate, tuple[int, ...]] | None:
        """Return the first candidate of the first alternative that has one, and what it drops."""
        request_rules = [rule for rule in rules if rule.concerns(number)]
        soft = [state for state in request_rules if state.rule.soft]
        request = self.placing.requests[number]
        for drop in range(len(soft) + 1):
            dropped = soft[len(soft) - drop :]
            kept = [rule for rule in request_rules if rule not in dropped]
            eligible = self._eligible_domains(number, kept)
            pool = room.pool(request)
            place = pool.first(request.alternatives, rules=kept, eligible=eligible)
            if place is not None:
                return *place, tuple(rule.number for rule in dropped)
        return None

    # -- what there was when the call began ------------------------------------------------------

    def _at_begin(self, number: int) -> Iterator[Query]:
        """Yield the queries of a request, one for each alternative."""
        request = self.placing.requests[number]
        for alternative in request.alternatives:
            yield self._begin.pool(request).query(alternative)

    def _eligible_domains(self, number: int, rules: Sequence[RuleState]) -> EligibleDomains:
        """Return for each rule on skew the domains that had a candidate for a request."""
        domains_by_rule = self._eligible.setdefault(number, {})
        for rule in rules:
            self.budget.check()
            if rule.rule.max_skew is not None and rule.number not in domains_by_rule:
                domains_by_rule[rule.number] = self._with_candidates(number, rule.domains)
        return domains_by_rule

    def _with_candidates(self, number: int, domains: Domains) -> Mask:
        has_any = np.zeros(domains.count, dtype=np.bool_)
        for query in self._at_begin(number):
            matching = query.matching_trees()
            if matching is not None:
                has_any |= domains.touched_by(matching)
                continue
            for candidate in query.candidates():
                has_any[list(domains.containing(candidate.trees))] = True
        return has_any

    # -- who holds already -----------------------------------------------------------------------

    def _trees_of(self, holder: Holder) -> tuple[int, ...]:
        return trees_of(self.forest, rows_of(self.forest, holder.allocations))

    def _of_holder(self, consumer: str) -> Placement:
        holder = self.holders[consumer]
        trees = self._trees_of(holder)
        return Placement(
            consumer,
            holder.alternative,
            holder.allocations,
            None,
            (),
            roots_of(self.forest, trees),
        )
