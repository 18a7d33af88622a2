# SPDX-License-Identifier: Apache-2.0
"""Places the consumers of one call one after the other (contract page 98, section 4)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.candidate import (
    Candidate,
    find_roots,
    find_rows,
    find_trees,
    make_placement,
)
from treeclaim.forest.placing.queries import Query
from treeclaim.forest.placing.query_pool import HoldRoom
from treeclaim.forest.placing.rules import EligibleDomains, RuleDomains, RuleState, prepare_rules
from treeclaim.forest.placing.tree_counts import bound_by_tree
from treeclaim.forest.table.columns import GREATEST, Integers, Mask, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.placing import PlacedConsumer, Placement, PlacingCall, PlacingRule


@dataclass
class Attempt:
    """The result of placing a call, in one domain if it has a rule `same_domain`.

    Attributes:
        placed: Placements by consumer, including consumers that had allocations before.
        unplaced: Unplaced consumers, in the order of the call.
        reached: Number of consumers that were placed before the first unplaced consumer.
        domain: The domain for `same_domain`; None without such a rule, or without a possible domain.
        request: Number of the request of the first unplaced consumer; None if all are placed.
    """

    placed: dict[str, Placement] = field(default_factory=dict)
    unplaced: list[str] = field(default_factory=list)
    reached: int = 0
    domain: int | None = None
    request: int | None = None


class ConsumerPlacer:
    """Places the consumers of one call; the Forest is not changed."""

    def __init__(
        self,
        forest: Forest,
        placing: PlacingCall,
        holders: Mapping[str, PlacedConsumer],
        budget: Budget,
    ) -> None:
        """Prepare the rules; `holders` are the consumers of the call, and of its rules, with allocations."""
        self.forest = forest
        self.placing = placing
        self.holders = holders
        self.budget = budget
        self._rules = prepare_rules(forest, placing.rules, budget)
        self._eligible: dict[int, dict[int, Mask]] = {}
        self._initial_room = HoldRoom(forest, budget)

    def place_all(self) -> Attempt:
        """Place all consumers; with a rule `same_domain`, try the domains one after the other."""
        room = HoldRoom(self.forest, self.budget)
        same_domain = next((each for each in self._rules if each[0].same_domain), None)
        if same_domain is None:
            return self._attempt(None, room)
        rule, domains = same_domain
        best: Attempt | None = None
        most: Rows | None = None
        # All consumers with allocations that the rule counts must be in the domain.
        open_domains = np.ones(domains.count, dtype=np.bool_)
        for holder in self._find_counted_holders(rule):
            present = domains.find_containing(self._find_trees(holder))
            open_domains[np.setdiff1d(np.arange(domains.count), present)] = False
        for domain in self._draw_domains(rule, domains, open_domains):
            attempt = self._attempt(domain, room)
            if not attempt.unplaced:
                return attempt
            room.remove_placed()
            if best is None or attempt.reached > best.reached:
                best = attempt
                most = self._bound_reached(rule, domains) if most is None else most
                # A domain that cannot reach more consumers changes neither the result nor its explanation.
                open_domains &= most > best.reached
        return self._attempt(None, room) if best is None else best

    def _bound_reached(self, rule: PlacingRule, domains: RuleDomains) -> Rows:
        """Return upper bounds of `Attempt.reached` in each domain."""
        draws = any(request.from_holds for request in self.placing.requests)
        if draws:
            # Consumers may take held amounts besides the free amounts.
            return np.full(domains.count, GREATEST)
        # The indices of new consumers in the call, and the number of all consumers.
        indices: list[int] = []
        placed_counts = np.zeros(domains.count, dtype=np.int64)
        is_open = np.ones(domains.count, dtype=np.bool_)
        consumer_count = 0
        for number, request in enumerate(self.placing.requests):
            names = enumerate(request.consumers, consumer_count)
            new_indices = [index for index, name in names if name not in self.holders]
            consumer_count += len(request.consumers)
            indices += new_indices
            fits = np.full(domains.count, len(new_indices))
            if number in rule.requests:
                bounds = [
                    self._bound_fits(query, domains) for query in self._get_initial_queries(number)
                ]
                np.minimum(fits, np.add.reduce(bounds), out=fits)
            placed_counts[is_open] += fits[is_open]
            is_open &= fits >= len(new_indices)
        return np.array([*indices, consumer_count], dtype=np.int64)[placed_counts]

    def _bound_fits(self, query: Query, domains: RuleDomains) -> Integers:
        """Return upper bounds of the consumers of a query that fit into each domain on their own."""
        if not query.are_apart:
            return np.full(domains.count, GREATEST)
        return domains.sum_by_domain(bound_by_tree(query.forest, query.request, self.budget))

    # -- one domain after the other --------------------------------------------------------------

    def _find_counted_holders(self, rule: PlacingRule) -> list[PlacedConsumer]:
        """Return the consumers with allocations that a rule counts."""
        names = [
            consumer for number, consumer in self._list_consumers() if number in rule.requests
        ]
        counted_names = (*names, *rule.others)
        return [self.holders[consumer] for consumer in counted_names if consumer in self.holders]

    def _draw_domains(
        self, rule: PlacingRule, domains: RuleDomains, open_domains: Mask
    ) -> Iterator[int]:
        """Yield open domains in the order of the first new consumer's candidates.

        `open_domains` is changed: yielded domains are closed, and the caller may close further domains.
        """
        first = self._find_first_request(rule)
        if first is None:
            return
        request = self.placing.requests[first]
        for alternative in request.alternatives:
            while open_domains.any():
                self.budget.check()
                query = self._initial_room.get_pool(request).get_query(alternative)
                with self.budget.scope():
                    candidate = query.find_first(
                        domains.find_trees_in_any(open_domains),
                        lambda trees: bool(
                            open_domains[list(domains.find_containing(trees))].any()
                        ),
                    )
                if candidate is None:
                    break
                visited_domains = [
                    domain
                    for domain in domains.find_containing(candidate.trees)
                    if open_domains[domain]
                ]
                open_domains[visited_domains] = False
                yield from domains.sort(visited_domains)

    def _find_first_request(self, rule: PlacingRule) -> int | None:
        """Return the number of the request of the rule's first consumer without allocations."""
        new_numbers = (
            number for number, consumer in self._list_consumers() if consumer not in self.holders
        )
        return next((number for number in new_numbers if number in rule.requests), None)

    # -- one attempt -----------------------------------------------------------------------------

    def _attempt(self, domain: int | None, room: HoldRoom) -> Attempt:
        attempt, rules = Attempt(domain=domain), self._make_rule_states(domain)
        for number, consumer in self._list_consumers():
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

    def _list_consumers(self) -> Iterator[tuple[int, str]]:
        """Yield the numbers of requests and their consumers, in the order of the call."""
        for number, request in enumerate(self.placing.requests):
            for consumer in request.consumers:
                yield number, consumer

    def replay_failure(
        self, attempt: Attempt
    ) -> tuple[Forest, Sequence[RuleState], EligibleDomains]:
        """Place the consumers before the first unplaced consumer again, and return its situation.

        Returns:
            A Forest with the used amounts, and the held amounts from which the consumer may not draw; its strict
            rules; for rules on skew, the domains that had a candidate when the call began.
        """
        room, rules = HoldRoom(self.forest, self.budget), self._make_rule_states(attempt.domain)
        for number, consumer in self._list_consumers():
            if consumer == attempt.unplaced[0]:
                break
            self._place(room, rules, number, consumer)
        strict = [rule for rule in rules if rule.concerns(number) and not rule.rule.soft]
        request = self.placing.requests[number]
        query = room.get_pool(request).get_query(request.alternatives[0])
        forest = query.forest.make_view(held_amounts=room.find_held_without(request.from_holds))
        return forest, strict, self._find_eligible_domains(number, strict)

    def _make_rule_states(self, domain: int | None) -> list[RuleState]:
        """Return the rules, which count the consumers with allocations; see `RuleState` for the domain."""
        states = [
            RuleState(number, rule, domains, domain)
            for number, (rule, domains) in enumerate(self._rules)
        ]
        for state in states:
            for holder in self._find_counted_holders(state.rule):
                state.add(self._find_trees(holder))
        return states

    def _place(
        self, room: HoldRoom, rules: Sequence[RuleState], number: int, consumer: str
    ) -> Placement | None:
        """Place a consumer on its first candidate; a consumer with allocations keeps them."""
        self.budget.check()
        if consumer in self.holders:
            return self._make_holder_placement(consumer)
        match = self._find_candidate(room, rules, number)
        if match is None:
            return None
        alternative, candidate, dropped = match
        room.place(candidate.allocations, self.placing.requests[number].from_holds)
        for rule in rules:
            if rule.concerns(number):
                rule.add(candidate.trees)
        return make_placement(self.forest, consumer, alternative, candidate, dropped)

    def _find_candidate(
        self, room: HoldRoom, rules: Sequence[RuleState], number: int
    ) -> tuple[int, Candidate, tuple[int, ...]] | None:
        """Return the number of the alternative, its candidate, and the dropped soft rules; as few as possible."""
        request_rules = [rule for rule in rules if rule.concerns(number)]
        soft = [state for state in request_rules if state.rule.soft]
        request = self.placing.requests[number]
        for drop in range(len(soft) + 1):
            dropped = soft[len(soft) - drop :]
            kept_rules = [rule for rule in request_rules if rule not in dropped]
            eligible = self._find_eligible_domains(number, kept_rules)
            pool = room.get_pool(request)
            match = pool.find_first(request.alternatives, rules=kept_rules, eligible=eligible)
            if match is not None:
                return *match, tuple(rule.number for rule in dropped)
        return None

    # -- the state when the call began -----------------------------------------------------------

    def _get_initial_queries(self, number: int) -> Iterator[Query]:
        """Yield the queries of a request's alternatives in the state when the call began."""
        request = self.placing.requests[number]
        for alternative in request.alternatives:
            yield self._initial_room.get_pool(request).get_query(alternative)

    def _find_eligible_domains(self, number: int, rules: Sequence[RuleState]) -> EligibleDomains:
        """Return the domains that had a candidate for a request, by rule on skew."""
        domains_by_rule = self._eligible.setdefault(number, {})
        for rule in rules:
            self.budget.check()
            if rule.rule.max_skew is not None and rule.number not in domains_by_rule:
                domains_by_rule[rule.number] = self._find_candidate_domains(number, rule.domains)
        return domains_by_rule

    def _find_candidate_domains(self, number: int, domains: RuleDomains) -> Mask:
        has_any = np.zeros(domains.count, dtype=np.bool_)
        for query in self._get_initial_queries(number):
            matching = query.find_matching_trees()
            if matching is not None:
                has_any |= domains.find_with_any_tree(matching)
                continue
            for candidate in query.draw_candidates():
                has_any[list(domains.find_containing(candidate.trees))] = True
        return has_any

    # -- consumers with allocations --------------------------------------------------------------

    def _find_trees(self, holder: PlacedConsumer) -> tuple[int, ...]:
        return find_trees(self.forest, find_rows(self.forest, holder.allocations))

    def _make_holder_placement(self, consumer: str) -> Placement:
        holder = self.holders[consumer]
        trees = self._find_trees(holder)
        return Placement(
            consumer,
            holder.alternative,
            holder.allocations,
            None,
            (),
            find_roots(self.forest, trees),
        )
