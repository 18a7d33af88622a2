# SPDX-License-Identifier: Apache-2.0
"""Rules between consumers, and their domains (contract page 98, section 4; page 101, sections 4 and 5)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.candidate import no_trees
from treeclaim.forest.table.columns import (
    Integers,
    Mask,
    Rows,
    Trees,
    search_ascending,
    sum_by_part,
)
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.placing import PlacingRule
from treeclaim.model.extension.planning import PlanRule

EligibleDomains = Mapping[int, Mask]
"""The domains that had a candidate when the call began, by number of a rule with `max_skew`."""


class RuleDomains:
    """Sets of trees: single trees, or aggregates of the trees with a root in them."""

    def __init__(self, forest: Forest, aggregates: tuple[str, ...] | None, budget: Budget) -> None:
        """Find the trees of aggregates; None makes each tree a domain."""
        order = forest.order
        self._forest = forest
        self._are_trees = aggregates is None
        every = np.arange(len(order.roots))
        members = [np.zeros(0, dtype=np.int64)]
        for aggregate in aggregates or ():
            budget.check()
            rows = forest.rows_in_aggregate(aggregate)
            members.append(order.tree[rows[order.root[rows] == rows]])
        self.count = len(every) if aggregates is None else len(aggregates)
        tree = np.concatenate(members)
        domain = np.repeat(np.arange(-1, len(members) - 1), list(map(len, members)))
        by_tree = np.argsort(tree, kind="stable")
        # All pairs of a tree and a domain.
        self._tree: Trees = every if self._are_trees else tree[by_tree]
        self._domain: Rows = every if self._are_trees else domain[by_tree]
        self._starts = search_ascending(self._tree, np.arange(len(every) + 1))
        self.has_overlap = bool((np.diff(self._starts) > 1).any())
        """Whether any tree is in several domains."""

    def find_containing(self, trees: Iterable[int]) -> tuple[int, ...]:
        """Return the domains of any of the trees, ascending."""
        starts, domain = self._starts, self._domain
        return tuple(
            sorted({n for tree in trees for n in domain[starts[tree] : starts[tree + 1]].tolist()})
        )

    def find_trees_in_any(self, domains: Mask) -> Mask:
        """Return a mask of the trees in any of the domains."""
        if self._are_trees:
            return domains
        trees = no_trees(self._forest)
        trees[self._tree[domains[self._domain]]] = True
        return trees

    def find_trees_only_in(self, domains: Mask) -> Mask:
        """Return a mask of the trees in any of the domains, and in no further domain."""
        trees = self.find_trees_in_any(domains)
        return trees & ~self.find_trees_in_any(~domains) if self.has_overlap else trees

    def find_trees_in_all(self, domains: Rows) -> Mask:
        """Return a mask of the trees in all of the domains, which are distinct."""
        is_wanted = np.zeros(self.count, dtype=np.bool_)
        is_wanted[domains] = True
        trees_of_domains = self._tree[is_wanted[self._domain]]
        counts = np.bincount(trees_of_domains, minlength=len(self._starts) - 1)
        has_all: Mask = counts == len(domains)
        return has_all

    def find_with_any_tree(self, trees: Mask) -> Mask:
        """Return a mask of the domains with any of the trees."""
        domains = np.zeros(self.count, dtype=np.bool_)
        domains[self._domain[trees[self._tree]]] = True
        return domains

    def sum_by_domain(self, by_tree: Integers) -> Integers:
        """Return the sum of the numbers of each domain's trees, at most `GREATEST`."""
        return sum_by_part(self._domain, by_tree[self._tree], self.count)

    def sort(self, domains: Collection[int]) -> list[int]:
        """Return the domains of one candidate in the order of `same_domain`."""
        if not self._are_trees:
            return sorted(domains)
        roots = self._forest.order.roots
        return sorted(domains, key=lambda tree: self._forest.uuid_of(int(roots[tree])))


class RuleState:
    """A rule with the number of consumers in each domain."""

    def __init__(
        self,
        number: int,
        rule: PlacingRule,
        domains: RuleDomains,
        only: int | None = None,
        present: Sequence[int] = (),
    ) -> None:
        """Start without any consumers.

        `only` is the domain for `same_domain`. The rule does not close `present`, the current domains of the next
        consumer.
        """
        self.number = number
        self.rule = rule
        self.domains = domains
        self._only = only
        self._present = list(present)
        self.counts: Rows = np.zeros(domains.count, dtype=np.int64)

    def copy_without(self, trees: Iterable[int]) -> "RuleState":
        """Return the state for a move of a counted consumer, which may stay in its domains."""
        present = self.domains.find_containing(trees)
        state = RuleState(self.number, self.rule, self.domains, self._only, present)
        state.add(trees, -1)
        state.counts += self.counts
        return state

    def concerns(self, request: int) -> bool:
        """Return whether the rule is for the consumers of a request."""
        return request in self.rule.requests

    def add(self, trees: Iterable[int], count: int = 1) -> None:
        """Count a consumer in the domains of its trees; the count -1 removes it."""
        self.counts[list(self.domains.find_containing(trees))] += count

    def find_open_trees(self, eligible: EligibleDomains) -> Mask:
        """Return a mask of the trees that are permitted as the only tree of the next consumer."""
        domains = self.domains
        if self.rule.same_domain:
            return domains.find_trees_in_any(np.arange(domains.count) == self._only)
        limit, emptiest = self._find_limit(eligible)
        mask = domains.find_trees_only_in(self._find_open_domains(limit))
        if len(emptiest) and domains.has_overlap:
            mask |= domains.find_trees_in_all(emptiest) & domains.find_trees_only_in(
                self.counts <= limit
            )
        return mask

    def permits(self, trees: Iterable[int], eligible: EligibleDomains) -> bool:
        """Return whether the next consumer may have these trees."""
        domains = self.domains.find_containing(trees)
        if self.rule.same_domain:
            return self._only in domains
        limit, emptiest = self._find_limit(eligible)
        if len(emptiest) and set(emptiest.tolist()) <= set(domains):
            limit += 1
        return bool(domains) and bool(self._find_open_domains(limit)[list(domains)].all())

    def _find_open_domains(self, limit: int) -> Mask:
        is_open: Mask = self.counts < limit
        is_open[self._present] = True
        return is_open

    def _find_limit(self, eligible: EligibleDomains) -> tuple[int, Rows]:
        """Return the count that closes a domain, and for `max_skew` the emptiest domains.

        For a consumer in all of the emptiest domains, the limit is higher by one.
        """
        if self.rule.max_skew is None:
            return self.rule.max_per_domain or 0, np.zeros(0, dtype=np.int64)
        is_eligible = eligible[self.number]
        least = int(self.counts[is_eligible].min()) if is_eligible.any() else 0
        emptiest = np.flatnonzero(is_eligible & (self.counts == least))
        return self.rule.max_skew + least, emptiest


AnyRule = TypeVar("AnyRule", PlacingRule, PlanRule)


def prepare_rules(
    forest: Forest, rules: Sequence[AnyRule], budget: Budget
) -> list[tuple[AnyRule, RuleDomains]]:
    """Return the rules of a call with their domains; equal domains are one object."""
    domains_by_key: dict[tuple[str, ...] | None, RuleDomains] = {}
    for rule in rules:
        if rule.domains not in domains_by_key:
            budget.check()
            domains_by_key[rule.domains] = RuleDomains(forest, rule.domains, budget)
    return [(rule, domains_by_key[rule.domains]) for rule in rules]


def make_rule_states(
    rules: Sequence[tuple[PlanRule, RuleDomains]], trees: Mapping[str, Sequence[int]]
) -> dict[str, list[RuleState]]:
    """Return the states of a plan's rules (contract page 101, section 5.2) by consumer that a rule names.

    The rules count the consumers in `trees`.
    """
    states: dict[str, list[RuleState]] = {}
    for number, (rule, domains) in enumerate(rules):
        state = RuleState(number, PlacingRule(None, max_per_domain=rule.max_per_domain), domains)
        for consumer in rule.consumers:
            states.setdefault(consumer, []).append(state)
            state.add(trees.get(consumer, ()))
    return states
