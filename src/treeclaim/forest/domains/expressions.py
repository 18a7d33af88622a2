# SPDX-License-Identifier: Apache-2.0
"""Providers that satisfy expressions about their attributes (contract page 102, section 1).

Each term compares a column. Providers are never objects here. Each text is parsed as a version once,
however many providers have it.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.table.attributes import ABSENT, AttributeColumns, Kinds
from treeclaim.forest.table.columns import Integers, Mask, Rows
from treeclaim.model.extension.expressions import (
    MOST_VERSION_DIGITS,
    Comparison,
    Conjunction,
    Disjunction,
    Existence,
    Expression,
    Negation,
    Node,
    Operator,
    VersionValue,
)
from treeclaim.model.provider import GREATEST_NUMBER, AttributeKind, find_attribute_kind

_COMPARISONS: Mapping[Operator, Callable[[Any, Any], Any]] = {
    Operator.EQUAL: operator.eq,
    Operator.UNEQUAL: operator.ne,
    Operator.LESS: operator.lt,
    Operator.AT_MOST: operator.le,
    Operator.GREATER: operator.gt,
    Operator.AT_LEAST: operator.ge,
}

_VERSION = re.compile(rf"[0-9]{{1,{MOST_VERSION_DIGITS}}}(\.[0-9]{{1,{MOST_VERSION_DIGITS}}})*")
_BEYOND = GREATEST_NUMBER + 1

_CHECKED_EACH = 1_000
"""Texts that are parsed as versions between two checks of the deadline."""


def filter_by_expressions(
    attributes: AttributeColumns,
    expressions: Iterable[Expression],
    rows: Rows,
    budget: Budget = UNBOUNDED,
) -> Rows:
    """Return the rows that satisfy all expressions, in their former order."""
    versions = _Versions(attributes, budget)
    for expression in expressions:
        budget.check()
        rows = rows[_Evaluator(attributes, rows, versions).evaluate(expression.node)]
    return rows


class _Versions:
    """Texts as versions, each parsed once."""

    def __init__(self, attributes: AttributeColumns, budget: Budget) -> None:
        self._texts = attributes.texts
        self._budget = budget
        self._numbers_by_code: dict[int, tuple[int, ...] | None] = {}

    def compare_texts(
        self,
        codes: Integers,
        compare: Callable[[Any, Any], Any],
        versions: Sequence[VersionValue],
    ) -> Mask:
        """Return which texts, given by index, are versions that compare true with any of some versions."""
        holds = np.zeros(len(self._texts), dtype=np.bool_)
        is_there = holds.copy()
        is_there[codes] = True
        for nth, code in enumerate(np.flatnonzero(is_there).tolist()):
            if nth % _CHECKED_EACH == 0:
                self._budget.check()
            if code not in self._numbers_by_code:
                text = self._texts[code]
                self._numbers_by_code[code] = (
                    VersionValue.of(text).numbers if _VERSION.fullmatch(text) else None
                )
            numbers = self._numbers_by_code[code]
            if numbers is not None:
                holds[code] = any(compare(numbers, version.numbers) for version in versions)
        return holds[codes]


class _Evaluator:
    def __init__(self, attributes: AttributeColumns, rows: Rows, versions: _Versions) -> None:
        self._attributes = attributes
        self._rows = rows
        self._versions = versions
        self._values_by_name: dict[str, tuple[Kinds, Integers]] = {}

    def evaluate(self, node: Node) -> Mask:
        holds: Mask
        if isinstance(node, Disjunction):
            holds = np.logical_or.reduce([self.evaluate(part) for part in node.parts])
        elif isinstance(node, Conjunction):
            holds = np.logical_and.reduce([self.evaluate(part) for part in node.parts])
        elif isinstance(node, Negation):
            holds = ~self.evaluate(node.part)
        elif isinstance(node, Existence):
            holds = self._values(node.name)[0] != ABSENT
        else:
            holds = self._compare(node, *self._values(node.name))
        return holds

    def _values(self, name: str) -> tuple[Kinds, Integers]:
        if name not in self._values_by_name:
            self._values_by_name[name] = self._attributes.at(name, self._rows)
        return self._values_by_name[name]

    def _compare(self, term: Comparison, kinds: Kinds, values: Integers) -> Mask:
        compare = _COMPARISONS[term.operator]
        holds = np.zeros(len(kinds), dtype=np.bool_)
        for value in term.values:
            if isinstance(value, str):
                code = self._attributes.code_of(value)
                holds |= (kinds == AttributeKind.TEXT) & compare(values, code)
            elif not isinstance(value, VersionValue):
                number = min(max(int(value), -_BEYOND), _BEYOND)
                holds |= (kinds == find_attribute_kind(value)) & compare(values, number)
        versions = [value for value in term.values if isinstance(value, VersionValue)]
        if versions:
            is_text = kinds == AttributeKind.TEXT
            is_text[is_text] = self._versions.compare_texts(values[is_text], compare, versions)
            holds |= is_text
        return holds
