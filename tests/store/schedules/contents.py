# SPDX-License-Identifier: Apache-2.0
"""Texts of database contents and answers, comparable without generated ids and times.

Generated ids, random tokens and times differ between schedules. A text therefore has a mark for each id, and a list of
the ids. Two texts are equivalent if a renaming of ids makes them equal. Ids that a world sets explicitly are kept.
"""

import re
from dataclasses import dataclass

import sqlalchemy as sa

FIRST_ID = 1000
"""First generated id, greater than the ids and amounts of worlds."""

_NUMBER = re.compile(r"\d{4,}")
_TIME = re.compile(r"datetime\.datetime\([^)]*\)|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.\d]*")
_MARK = "#"


@dataclass(frozen=True)
class Text:
    """A text with marks instead of generated ids, and these ids in their order."""

    marked: str
    ids: tuple[str, ...]


def text_of(raw, known_ids):
    """Replace times, and all ids except the known ones, by marks."""
    ids = []

    def marked(match):
        number = match[0]
        if number in known_ids:
            return number
        ids.append(number)
        return _MARK

    return Text(_NUMBER.sub(marked, _TIME.sub("time", raw)), tuple(ids))


def numbers_in(raw):
    """Return the ids in a script."""
    return frozenset(_NUMBER.findall(raw))


def text_of_rows(rows, known_ids):
    """Return rows as one text, sorted without their ids; ids order only rows that are equal without them."""
    texts = sorted(
        (text_of(row, known_ids) for row in rows), key=lambda text: (text.marked, text.ids)
    )
    return Text(
        "\n".join(text.marked for text in texts),
        tuple(row_id for text in texts for row_id in text.ids),
    )


def renamed(ids):
    """Number ids by their first occurrence."""
    numbers = {}
    return tuple([numbers.setdefault(row_id, len(numbers)) for row_id in ids])


_ROW = {
    "sqlite": "json_array({})",
    "postgresql": "CAST(ROW({}) AS text)",
    "mariadb": "JSON_ARRAY({})",
}


def query_of_all(kind, tables):
    """Return a query for all rows of the tables as texts, without the rows' times; of further times only NULL or not."""
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
