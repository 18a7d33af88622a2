# SPDX-License-Identifier: Apache-2.0
"""Texts of database contents and answers, which are equal if they differ only in ids and times.

Ids of sequences, random tokens and times differ between schedules. A text therefore has a mark for each id, and a list of
the ids. Two texts are equivalent if a renaming of ids makes them equal. Ids that a world sets explicitly are kept.
"""

import re
from dataclasses import dataclass

import sqlalchemy as sa

FIRST_ID = 1000
"""Sequences begin here, out of the way of the ids that worlds give; all amounts are less."""

_NUMBER = re.compile(r"\d{4,}")
_TIME = re.compile(r"datetime\.datetime\([^)]*\)|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.\d]*")
_MARK = "#"


@dataclass(frozen=True)
class Text:
    """A text with marks instead of ids, and the ids in their order."""

    marked: str
    ids: tuple[str, ...]


def text_of(raw, known):
    """Mark the ids of a text, but those that are known, and all times."""
    ids = []

    def marked(match):
        number = match[0]
        if number in known:
            return number
        ids.append(number)
        return _MARK

    return Text(_NUMBER.sub(marked, _TIME.sub("time", raw)), tuple(ids))


def numbers_in(raw):
    """The ids that stand in a script."""
    return frozenset(_NUMBER.findall(raw))


def text_of_rows(rows, known):
    """Return many rows as a text, in an order that ids have no part in, unless rows differ in them alone."""
    texts = sorted((text_of(row, known) for row in rows), key=lambda one: (one.marked, one.ids))
    return Text(
        "\n".join(text.marked for text in texts),
        tuple(row_id for text in texts for row_id in text.ids),
    )


def renamed(ids):
    """Ids by the order in which they come first."""
    numbers = {}
    return tuple([numbers.setdefault(row_id, len(numbers)) for row_id in ids])


_ROW = {
    "sqlite": "json_array({})",
    "postgresql": "CAST(ROW({}) AS text)",
    "mariadb": "JSON_ARRAY({})",
}


def query_of_all(kind, tables):
    """Return a query for the rows of all tables as texts; of other times than those of rows, whether they are set."""
    queries = []
    for table in tables:
        columns = [
            f"{column.name} IS NULL" if isinstance(column.type, sa.DateTime) else column.name
            for column in table.c
            if column.name not in {"created_at", "updated_at"}
        ]
        row = _ROW[kind].format(", ".join(columns))
        queries.append(f"SELECT '{table.name}', {row} FROM {table.name}")
    return " UNION ALL ".join(queries)
