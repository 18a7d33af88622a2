# SPDX-License-Identifier: Apache-2.0
"""Which providers satisfy expressions about their attributes (contract page 102, section 1).

Each term compares a column. No provider is an object here; texts are compared with versions once for
each text, whoever has it.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.table.attributes import ABSENT, AttributeColumns, Kinds
from treeclaim.forest.table.columns import Integers, Mask, Rows
from treeclaim.model.attributes import GREATEST_NUMBER, AttributeKind, kind_of
from treeclaim.model.extension.expressions import (
    MOST_VERSION_DIGITS,
    Compared,
    Either,
    Every,
    Exists,
    Expression,
    Negated,
    Node,
    Operator,
    VersionValue,
)

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


def satisfying(
    attributes: AttributeColumns,
    expressions: Iterable[Expression],
    rows: Rows,
    budget: Budget = UNBOUNDED,
) -> Rows:
    """Return those of some rows in any order that satisfy all of some expressions, in that order."""
    for expression in expressions:
        budget.check()
        rows = rows[_Judged(attributes, rows).holds(expression.node)]
    return rows


class _Judged:
    """Rows of which is asked what holds for them."""

    def __init__(self, attributes: AttributeColumns, rows: Rows) -> None:
        self._attributes = attributes
        self._rows = rows
        self._values: dict[str, tuple[Kinds, Integers]] = {}

    def holds(self, node: Node) -> Mask:
        """Tell for which of the rows a part of an expression holds."""
        holds: Mask
        if isinstance(node, Either):
            holds = np.logical_or.reduce([self.holds(part) for part in node.parts])
        elif isinstance(node, Every):
            holds = np.logical_and.reduce([self.holds(part) for part in node.parts])
        elif isinstance(node, Negated):
            holds = ~self.holds(node.part)
        elif isinstance(node, Exists):
            holds = self._of(node.name)[0] != ABSENT
        else:
            holds = self._compared(node)
        return holds

    def _of(self, name: str) -> tuple[Kinds, Integers]:
        """Return kinds and values of an attribute."""
        if name not in self._values:
            column = self._attributes.column(name)
            if column is None:
                none = np.zeros(len(self._rows), dtype=np.int64)
                self._values[name] = none.astype(np.uint8), none
            else:
                self._values[name] = column.at(self._rows)
        return self._values[name]

    def _compared(self, term: Compared) -> Mask:
        compare = _COMPARISONS[term.operator]
        kinds, values = self._of(term.name)
        found = np.zeros(len(kinds), dtype=np.bool_)
        for value in term.values:
            if isinstance(value, VersionValue):
                is_text = kinds == AttributeKind.TEXT
                is_text[is_text] = self._of_version(value, compare, values[is_text])
                found |= is_text
            elif isinstance(value, str):
                code = self._attributes.code_of(value)
                found |= (kinds == AttributeKind.TEXT) & compare(values, code)
            else:
                number = min(max(int(value), -_BEYOND), _BEYOND)
                found |= (kinds == kind_of(value)) & compare(values, number)
        return found

    def _of_version(
        self, version: VersionValue, compare: Callable[[Any, Any], Any], codes: Integers
    ) -> Mask:
        """Tell which texts are versions that compare so with one."""
        distinct, nth = np.unique(codes, return_inverse=True)
        texts = [self._attributes.texts[code] for code in distinct.tolist()]
        verdicts = [
            _VERSION.fullmatch(text) is not None
            and compare(VersionValue.of(text).numbers, version.numbers)
            for text in texts
        ]
        holds: Mask = np.array(verdicts, dtype=np.bool_)[nth]
        return holds
