# SPDX-License-Identifier: Apache-2.0
"""A UNION of text columns whose tables differ in collation.

Tables of an old database have the default collation of the server at their creation. MariaDB
refuses a UNION of such columns (error 1271).
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler


class PlainText(sa.ColumnElement[str]):
    """The text of a column without its collation."""

    # For compiled statements only: in SQLAlchemy's own cache all columns would share one key.
    inherit_cache = False
    type = sa.String()

    def __init__(self, column: sa.ColumnElement[Any]) -> None:
        self.column = column


@compiles(PlainText)
def _as_it_is(element: PlainText, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.column, **options)


@compiles(PlainText, "mysql")
def _converted(element: PlainText, compiler: SQLCompiler, **options: Any) -> str:
    text = compiler.process(element.column, **options)
    return f"CONVERT({text} USING utf8mb4) COLLATE utf8mb4_bin"
