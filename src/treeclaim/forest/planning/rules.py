# SPDX-License-Identifier: Apache-2.0
"""Rules for consumers that are placed again while others stay (contract page 101, sections 4 and 5)."""

from collections.abc import Container, Mapping, Sequence
from typing import Protocol

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.domains import AggregateDomains, Domains, TreeDomains
from treeclaim.forest.placing.rules import RuleDomains, RuleState
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.placing import Rule
from treeclaim.model.extension.planning import PlanRule

Trees = Mapping[str, Sequence[int]]
"""The trees of each consumer that holds something."""


class State(Protocol):
    """A rule while consumers are placed."""

    @property
    def number(self) -> int:
        """Return the number of the rule."""
        ...

    def add(self, trees: Sequence[int]) -> None:
        """Count a consumer that was placed."""
        ...

    def mask(self, request: int, eligible: Mapping[int, Mask] | None) -> Mask:
        """Tell which trees may be the only one of a candidate."""
        ...

    def keeps(self, trees: Sequence[int], eligible: Mapping[int, Mask] | None) -> bool:
        """Tell whether a candidate with some trees keeps the rule."""
        ...


def in_force(
    forest: Forest, rules: Sequence[PlanRule], trees: Trees, budget: Budget
) -> list[tuple[int, PlanRule]]:
    """Return the rules, with their numbers, without those that want one domain and had none before."""
    kept = []
    for number, rule in enumerate(rules):
        budget.check()
        domains = domains_of(forest, rule.domains, budget)
        if rule.max_per_domain is not None or _common(rule, domains, trees, ()):
            kept.append((number, rule))
    return kept


def _common(
    rule: PlanRule, domains: Domains, trees: Trees, gone: Container[str]
) -> set[int] | None:
    """Return the domains that the present consumers have in common; None without any."""
    common: set[int] | None = None
    for consumer in rule.consumers:
        if consumer in trees and consumer not in gone:
            mine = set(domains.containing(trees[consumer]))
            common = mine if common is None else common & mine
    return common


class Rules:
    """The rules of a call in one Forest."""

    def __init__(
        self, forest: Forest, rules: Sequence[tuple[int, PlanRule]], trees: Trees, budget: Budget
    ) -> None:
        """Take the rules in force, with their numbers, and where all consumers are."""
        self._rules = [
            (number, rule, domains_of(forest, rule.domains, budget)) for number, rule in rules
        ]
        self._trees = trees

    def states(self, gone: Container[str]) -> dict[str, list[State]]:
        """Return the rules once some consumers have left, by those to which they apply."""
        states: dict[str, list[State]] = {}
        for number, rule, domains in self._rules:
            state = self._state(number, rule, domains, gone)
            for consumer in rule.consumers:
                states.setdefault(consumer, []).append(state)
        return states

    def _state(self, number: int, rule: PlanRule, domains: Domains, gone: Container[str]) -> State:
        if rule.max_per_domain is None:
            return _Together(number, domains, _common(rule, domains, self._trees, gone))
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
            if consumer in self._trees and consumer not in gone:
                state.add(self._trees[consumer])
        return state


class _Together:
    """All in one domain."""

    def __init__(self, number: int, domains: Domains, common: set[int] | None) -> None:
        """Begin with the domains that those that stay have in common; None if none stay."""
        self.number = number
        self._domains = domains
        self._common = common

    def add(self, trees: Sequence[int]) -> None:
        """Count a consumer that was placed."""
        mine = set(self._domains.containing(trees))
        self._common = mine if self._common is None else self._common & mine

    def mask(self, request: int, eligible: Mapping[int, Mask] | None) -> Mask:
        """Tell which trees may be the only one of a candidate."""
        del request, eligible
        some = np.full(self._domains.count, self._common is None)
        some[list(self._common or ())] = True
        return self._domains.with_any(some)

    def keeps(self, trees: Sequence[int], eligible: Mapping[int, Mask] | None) -> bool:
        """Tell whether a candidate with some trees keeps the rule."""
        del eligible
        mine = set(self._domains.containing(trees))
        return bool(mine if self._common is None else mine & self._common)


def domains_of(forest: Forest, names: tuple[str, ...] | None, budget: Budget) -> Domains:
    """Return every tree as a domain, or some aggregates."""
    return TreeDomains(forest) if names is None else AggregateDomains(forest, names, budget)
