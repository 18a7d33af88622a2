# SPDX-License-Identifier: Apache-2.0
"""Many rows as the literals of one INSERT, for PyMySQL.

The driver's own `executemany` writes such an INSERT too, but looks at each value by itself, in
Python: for 3,000 allocations that took longer than the server needed for them. Here a column is
written as a whole: what all rows share once, numbers as they are, and texts of plain characters
between quotes. All else is left to the driver.

One INSERT from a list of values is what the server expects for many rows. One that selects from a
JSON text would hold InnoDB's lock of the automatic ids to its end, and others would wait for that.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

_PLAIN = re.compile(r"[0-9A-Za-z_.:,\[\] -]*")
"""Texts that mean the same in quotes whatever the encoding and the SQL mode are."""

_LONGEST = 1_000_000
"""Characters of one statement, about; the server takes 16 MiB if nothing else is configured, and the
driver makes statements of this size too."""


def insert_rows(cursor: Any, beginning: str, columns: Sequence[Sequence[Any]]) -> None:
    """Insert many rows.

    Args:
        cursor: A cursor of PyMySQL.
        beginning: The statement up to the first row.
        columns: The values of each column, all of the same length.

    Raises:
        Error: of the driver.
    """
    written = map(",".join, zip(*(_literals(cursor, values) for values in columns), strict=True))
    for rows in _pieces(list(written)):
        cursor.execute(f"{beginning}({'),('.join(rows)})")


def _literals(cursor: Any, values: Sequence[Any]) -> list[str]:
    """Return values as SQL."""
    first = values[0]
    if all(value is first for value in values):
        return [cursor.mogrify("%s", (first,))] * len(values)
    kinds = set(map(type, values))
    if kinds == {int}:
        return list(map(str, values))
    if kinds == {str} and _PLAIN.fullmatch("".join(values)):
        return [f"'{value}'" for value in values]
    return [cursor.mogrify("%s", (value,)) for value in values]


def _pieces(rows: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split rows so that none of the statements is too long."""
    begin, length = 0, 0
    for position, row in enumerate(rows):
        length += len(row)
        if length > _LONGEST and position > begin:
            yield rows[begin:position]
            begin, length = position, len(row)
    yield rows[begin:]
