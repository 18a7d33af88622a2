# SPDX-License-Identifier: Apache-2.0
"""Rules while consumers are placed: who is where, and what may still be taken.

Those of a call for new consumers, and those for consumers that are placed anew while others stay (contract
page 101, sections 4 and 5).
"""

from collections.abc import Container, Iterable, Mapping, Sequence

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.domains import (
    AggregateDomains,
    Domains,
    Emptiest,
    TreeDomains,
    keeps,
)
from treeclaim.forest.table.columns import Mask, Rows, read_only
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.placing import Rule
from treeclaim.model.extension.planning import PlanRule

_ANY = -1
"""Stands for every request."""


Trees = Mapping[str, Sequence[int]]
"""The trees of each consumer that holds something."""


class RuleDomains:
    """A rule with its domains, which stay the same in a whole call."""

    def __init__(self, number: int, rule: Rule, domains: Domains) -> None:
        """Take the rule with a number in its call, and its domains."""
        self.number = number
        self.rule = rule
        self.domains = domains

    def concerns(self, request: int) -> bool:
        """Tell whether it is for the consumers of a request."""
        return request in self.rule.requests


def rule_domains(forest: Forest, rules: Sequence[Rule], budget: Budget) -> list[RuleDomains]:
    """Return the rules of a call with their domains, which several may have in common."""
    known: dict[tuple[str, ...] | None, Domains] = {}
    ruled = []
    for number, rule in enumerate(rules):
        budget.check()
        names = rule.domains
        if names not in known:
            known[names] = domains_of(forest, names, budget)
        ruled.append(RuleDomains(number, rule, known[names]))
    return ruled


class RuleState:
    """A rule while consumers are placed."""

    def __init__(self, rule: RuleDomains, allowed: int | None) -> None:
        """Begin without any consumer.

        Args:
            rule: The rule.
            allowed: The only domain, where the rule is for one; None where there is none.
        """
        self._rule = rule
        self._allowed = allowed
        self._counts: Rows = np.zeros(rule.domains.count, dtype=np.int64)
        self._masks: dict[int, Mask] = {}

    @property
    def number(self) -> int:
        """Return the number of the rule."""
        return self._rule.number

    @property
    def is_soft(self) -> bool:
        """Tell whether a consumer may do without it."""
        return self._rule.rule.soft

    @property
    def has_skew(self) -> bool:
        """Tell whether it compares with the emptiest domain."""
        return self._rule.rule.max_skew is not None

    def copied(self) -> "RuleState":
        """Return the same as it is now."""
        other = RuleState(self._rule, self._allowed)
        other._counts = self._counts.copy()
        return other

    def concerns(self, request: int) -> bool:
        """Tell whether it is for the consumers of a request."""
        return self._rule.concerns(request)

    def add(self, trees: Iterable[int]) -> None:
        """Count a consumer with some trees."""
        rule, domains = self._rule.rule, self._rule.domains
        for domain in domains.containing(trees):
            self._counts[domain] += 1
            if rule.max_per_domain is not None and self._counts[domain] >= rule.max_per_domain:
                for mask in self._masks.values():
                    domains.close(domain, mask)
        if rule.max_skew is not None:
            self._masks.clear()

    def mask(self, request: int, eligible: "Mapping[int, Mask] | None") -> Mask:
        """Tell which trees may be the only one of a candidate for a consumer of a request.

        Args:
            request: Number of the request.
            eligible: For rules on skew: which domains had a candidate when the call began.

        Returns:
            A mask over trees, read-only; the next consumer that is added changes it.
        """
        # Other rules are the same for all requests.
        key = request if self.has_skew else _ANY
        if key not in self._masks:
            self._masks[key] = self._kinds(self._eligible(eligible))[self._rule.domains.kind]
        return read_only(self._masks[key])

    def _kinds(self, emptiest: Emptiest | None) -> Mask:
        rule, domains = self._rule.rule, self._rule.domains
        if rule.same_domain:
            only = np.zeros(len(domains.kinds), dtype=np.bool_)
            if self._allowed is not None and self._allowed >= 0:
                only[domains.with_domain[self._allowed]] = True
            return only
        most = rule.max_per_domain if rule.max_skew is None else rule.max_skew
        return domains.in_some & domains.fit(self._counts, most or 0, emptiest)

    def _eligible(self, eligible: "Mapping[int, Mask] | None") -> Emptiest | None:
        if self._rule.rule.max_skew is None or eligible is None:
            return None
        return Emptiest(self._counts, eligible[self.number])

    def keeps(self, trees: Sequence[int], eligible: "Mapping[int, Mask] | None") -> bool:
        """Tell whether a candidate with some trees keeps the rule."""
        rule = self._rule.rule
        domains = self._rule.domains.containing(trees)
        if rule.same_domain:
            return self._allowed in domains
        most = rule.max_per_domain if rule.max_skew is None else rule.max_skew
        return keeps(domains, self._counts, most or 0, self._eligible(eligible))


class PlanRules:
    """The rules of a plan (contract page 101, sections 4 and 5) in one Forest."""

    def __init__(
        self, forest: Forest, rules: Sequence[PlanRule], trees: Trees, budget: Budget
    ) -> None:
        """Take the rules, and the trees of all consumers that they name."""
        self._rules = [(rule, domains_of(forest, rule.domains, budget)) for rule in rules]
        self._trees = trees

    def states(self, released: Container[str]) -> dict[str, list[RuleState]]:
        """Return the states of the rules once some consumers are released, by consumer that a rule names."""
        states: dict[str, list[RuleState]] = {}
        for number, (rule, domains) in enumerate(self._rules):
            counted = Rule(
                rule.domains,
                max_per_domain=rule.max_per_domain,
                max_skew=None,
                same_domain=False,
                others=(),
                requests=frozenset({0}),
                soft=False,
            )
            state = RuleState(RuleDomains(number, counted, domains), None)
            for consumer in rule.consumers:
                states.setdefault(consumer, []).append(state)
                if consumer in self._trees and consumer not in released:
                    state.add(self._trees[consumer])
        return states


def domains_of(forest: Forest, names: tuple[str, ...] | None, budget: Budget) -> Domains:
    """Return every tree as a domain, or some aggregates."""
    return TreeDomains(forest) if names is None else AggregateDomains(forest, names, budget)
