# SPDX-License-Identifier: Apache-2.0
"""Texts of several tables in one result, where the tables differ in collation.

A database that has lived long has tables from several times, each with what was the server's
default collation then. MariaDB refuses a UNION of such columns (error 1271).
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler


class PlainText(sa.ColumnElement[str]):
    """The text of a column without its collation."""

    # For ready statements; two columns would have one key in SQLAlchemy's own cache.
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
