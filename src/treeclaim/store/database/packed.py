# SPDX-License-Identifier: Apache-2.0
"""Rows that come as one JSON text each, for PyMySQL.

The driver reads each value of a row by itself, in Python, a microsecond for each. A text it reads
once, and orjson the values in it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler


class Packed:
    """A query whose rows are packed.

    Args:
        statement: The query. Times in its result become texts.

    Attributes:
        statement: The same with one column.
    """

    def __init__(self, statement: sa.Select[Any]) -> None:
        columns = list(statement.selected_columns)
        self._floats = [
            position
            for position, column in enumerate(columns)
            if isinstance(column.type, sa.Float)
        ]
        self.statement = statement.with_only_columns(_JsonRow(columns), maintain_column_froms=True)

    def values(self, found: Iterable[Sequence[str]]) -> list[list[Any]]:
        """Return the values of rows."""
        rows: list[list[Any]] = orjson.loads(f"[{','.join(text for (text,) in found)}]")
        for position in self._floats:
            for row in rows:
                if row[position] is not None:
                    row[position] = float(row[position])
        return rows


def is_packed_for(dialect: Dialect) -> bool:
    """Tell whether the rows of queries are packed."""
    return dialect.driver == "pymysql"


class _JsonRow(sa.ColumnElement[str]):
    """Columns as one text."""

    # For compiled statements only: in SQLAlchemy's own cache all would share one key.
    inherit_cache = False
    type = sa.Text()

    def __init__(self, columns: Sequence[sa.ColumnElement[Any]]) -> None:
        self.columns = columns


@compiles(_JsonRow, "mysql")
def _in_json(element: _JsonRow, compiler: SQLCompiler, **options: Any) -> str:
    options["within_columns_clause"] = False
    texts = (_in_array(column, compiler, options) for column in element.columns)
    return f"JSON_ARRAY({', '.join(texts)})"


def _in_array(column: sa.ColumnElement[Any], compiler: SQLCompiler, options: Any) -> str:
    text = compiler.process(column, **options)
    if isinstance(column.type, sa.Float):
        # MySQL would write all digits of a double for a number of fewer.
        return f"CAST({text} AS CHAR(40))"
    if isinstance(column.type, sa.String):
        # Columns of different collations are refused together.
        return f"CONVERT({text} USING utf8mb4) COLLATE utf8mb4_bin"
    return text
