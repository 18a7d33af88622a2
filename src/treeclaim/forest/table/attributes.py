# SPDX-License-Identifier: Apache-2.0
"""Attributes of rows as columns (contract page 102, section 1).

Each attribute name in use has a column, which holds only the rows with that attribute. A cloud
without attributes therefore pays nothing. Rows are only appended, as everywhere in a table.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from treeclaim.forest.table.columns import NO_ROW, Column, Integers, Mask, Rows
from treeclaim.forest.table.columns import search_ascending as search
from treeclaim.forest.table.holdings import rows_by_group
from treeclaim.forest.table.layout import Layout, group_values
from treeclaim.model.provider import AttributeKind, Attributes, AttributeValue, find_attribute_kind
from treeclaim.model.whole import AttributeRows

Kinds = npt.NDArray[np.uint8]
"""Types of values: those of `AttributeKind`, and `ABSENT`."""

ABSENT = 0
"""The type of a missing value."""

_BISECTION_RATIO = 8
"""Rows with an attribute for each sought row, above which the sought rows are bisected."""


def _decode(kind: int, number: int, texts: Sequence[str]) -> AttributeValue:
    if kind == AttributeKind.TEXT:
        return texts[number]
    return bool(number) if kind == AttributeKind.BOOL else number


class _Column:
    """The values of one attribute by row, dead rows included.

    Attributes:
        rows: Rows with the attribute, ascending.
        kinds: Types of the values.
        values: Integers; 0 and 1 for bools; for texts, their index in `AttributeColumns.texts`.
    """

    __slots__ = ("kinds", "rows", "values")

    def __init__(self) -> None:
        self.rows = Column(np.int64)
        self.kinds = Column(np.uint8)
        self.values = Column(np.int64)

    def extend(self, rows: Rows, kinds: Kinds, values: Integers) -> None:
        self.rows.extend(rows)
        self.kinds.extend(kinds)
        self.values.extend(values)

    def at(self, rows: Rows) -> tuple[Kinds, Integers]:
        """Return kinds and values of rows in any order, `ABSENT` and 0 for rows without the attribute."""
        having = self.rows.values
        if len(rows) * _BISECTION_RATIO < len(having):
            where = search(having, rows)
            where[where == len(having)] = 0
        else:
            by_row = np.zeros(max(int(having[-1]), int(rows.max(initial=0))) + 1, dtype=np.int64)
            by_row[having] = np.arange(len(having))
            where = by_row[rows]
        has = having[where] == rows
        kinds = np.where(has, self.kinds.values[where], np.uint8(ABSENT))
        return kinds, np.where(has, self.values.values[where], 0)


class AttributeColumns:
    """The attributes of the rows of a table."""

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = {}
        self._texts: list[str] = []
        self._codes: dict[str, int] = {}

    @property
    def is_empty(self) -> bool:
        """Return whether no row ever had an attribute."""
        return not self._columns

    def at(self, name: str, rows: Rows) -> tuple[Kinds, Integers]:
        """Return the kinds and values of an attribute for rows in any order.

        A value is an integer: 0 or 1 for a bool, for a text its index in `texts`. Rows without the
        attribute have the kind `ABSENT` and the value 0.
        """
        column = self._columns.get(name)
        if column is None:
            return np.full(len(rows), ABSENT, dtype=np.uint8), np.zeros(len(rows), dtype=np.int64)
        return column.at(rows)

    def range_of(self, name: str, alive: Mask) -> tuple[int, int] | None:
        """Return the least and greatest integer of an attribute in living rows; None if there is none."""
        column = self._columns.get(name)
        if column is None:
            return None
        is_integer = column.kinds.values == AttributeKind.INTEGER
        values = column.values.values[alive[column.rows.values] & is_integer]
        return (int(values.min()), int(values.max())) if len(values) else None

    @property
    def texts(self) -> Sequence[str]:
        """Return all texts that rows ever had, each once."""
        return self._texts

    def code_of(self, text: str) -> int:
        """Return the index of a text in `texts`, -1 if it is missing."""
        return self._codes.get(text, -1)

    def read_rows(
        self, rows: Rows, names_of_rows: Sequence[tuple[str, ...]]
    ) -> list[dict[str, AttributeValue]]:
        """Return the attributes of each row by name, given the names of each."""
        by_row: list[dict[str, AttributeValue]] = [{} for _ in names_of_rows]
        if self.is_empty:
            return by_row
        for name, which in sorted(rows_by_group(0, names_of_rows).items()):
            column = self._columns[name]
            at = search(column.rows.values, rows[which])
            kinds, values = column.kinds.values[at].tolist(), column.values.values[at].tolist()
            for nth, kind, number in zip(which.tolist(), kinds, values, strict=True):
                by_row[nth][name] = _decode(kind, number, self._texts)
        return by_row

    def append(self, first: int, attributes_of_rows: Sequence[Attributes]) -> None:
        """Append the attributes of new rows from `first` on."""
        pairs: dict[str, list[tuple[int, AttributeValue]]] = {}
        for row, attributes in enumerate(attributes_of_rows, first):
            for name, value in attributes.items():
                pairs.setdefault(name, []).append((row, value))
        for name, entries in pairs.items():
            self._append_values(
                name,
                np.array([row for row, _ in entries], dtype=np.int64),
                np.array([find_attribute_kind(value) for _, value in entries], dtype=np.uint8),
                np.array([self._encode(value) for _, value in entries], dtype=np.int64),
            )

    def append_copies(
        self, name: str, rows: Rows, source: "AttributeColumns", source_rows: Rows
    ) -> None:
        """Append copies of an attribute that all source rows have, one for each new ascending row."""
        kinds, values = source.at(name, source_rows)
        if source is not self:
            is_text = kinds == AttributeKind.TEXT
            codes, nth = np.unique(values[is_text], return_inverse=True)
            new_codes = [self._encode(source.texts[code]) for code in codes.tolist()]
            values[is_text] = np.array(new_codes, dtype=np.int64)[nth]
        self._append_values(name, rows, kinds, values)

    def load(self, columns: AttributeRows, layout: Layout) -> list[tuple[str, ...]]:
        """Load the attributes of all rows into empty columns; return the names of each row.

        Attributes of providers without a row are skipped.
        """
        if not len(columns.provider_id):
            return [()] * len(layout.provider)
        rows = layout.rows_of(columns.provider_id)
        has_row = rows != NO_ROW
        order = np.flatnonzero(has_row)[np.lexsort((rows[has_row], columns.name[has_row]))]
        rows, name = rows[order], columns.name[order]
        kinds = np.array([find_attribute_kind(value) for value in columns.values], dtype=np.uint8)
        numbers = np.array([self._encode(value) for value in columns.values], dtype=np.int64)
        value = columns.value[order]
        cuts = search(name, np.arange(len(columns.names) + 1)).tolist()
        for at, (first, end) in enumerate(pairwise(cuts)):
            if first < end:
                values_of_name = value[first:end]
                self._append_values(
                    columns.names[at],
                    rows[first:end],
                    kinds[values_of_name],
                    numbers[values_of_name],
                )
        numbers_by_row = group_values(rows, name, len(layout.provider))
        names_by_numbers = {
            numbers_of_row: tuple(sorted(columns.names[number] for number in numbers_of_row))
            for numbers_of_row in set(numbers_by_row)
        }
        return list(map(names_by_numbers.__getitem__, numbers_by_row))

    def _append_values(self, name: str, rows: Rows, kinds: Kinds, values: Integers) -> None:
        self._columns.setdefault(name, _Column()).extend(rows, kinds, values)

    def _encode(self, value: AttributeValue) -> int:
        if not isinstance(value, str):
            return int(value)
        code = self._codes.setdefault(value, len(self._texts))
        if code == len(self._texts):
            self._texts.append(value)
        return code
