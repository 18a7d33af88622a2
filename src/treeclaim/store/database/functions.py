# SPDX-License-Identifier: Apache-2.0
"""SQL functions that SQLite, PostgreSQL and MariaDB write in different ways."""

from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

_UTF8 = "CONVERT({} USING utf8mb4) COLLATE utf8mb4_bin"


class _DatabaseFunction(GenericFunction[str]):
    """A function with its SQL for each dialect, in which `{}` stands for the arguments.

    Attributes:
        sqlite, postgresql, mysql: The SQL.
        makes_json: Whether the arguments become JSON. MariaDB copies the bytes of a column in latin1 into
            JSON that it declares to be UTF-8, and refuses columns of different collations in one array.
    """

    type = sa.Text()
    inherit_cache = True
    sqlite: ClassVar[str] = "{}"
    postgresql: ClassVar[str] = "{}"
    mysql: ClassVar[str] = "{}"
    makes_json: ClassVar[bool] = False


class JsonColumn(_DatabaseFunction):
    """An aggregate: the values of a column as the text of a JSON array.

    PostgreSQL's driver would read JSON by a slower parser.
    """

    inherit_cache = True
    sqlite = "json_group_array({})"
    postgresql = "CAST(json_agg({}) AS TEXT)"
    mysql = "JSON_ARRAYAGG({})"
    makes_json = True


class JsonRow(_DatabaseFunction):
    """A row as the text of a JSON array."""

    inherit_cache = True
    sqlite = "json_array({})"
    postgresql = "CAST(json_build_array({}) AS TEXT)"
    mysql = "JSON_ARRAY({})"
    makes_json = True


class ExactText(_DatabaseFunction):
    """A floating-point number with all its digits; a cast of SQLite, or JSON, would keep fifteen."""

    inherit_cache = True
    sqlite = "printf('%!.17g', {})"
    postgresql = "CAST({} AS TEXT)"
    mysql = "CAST({} AS CHAR(40))"


class PlainText(_DatabaseFunction):
    """The text of a column without its collation.

    Tables of an old database have the default collation of the server at their creation, and MariaDB
    refuses a UNION of such columns (error 1271).
    """

    inherit_cache = True
    mysql = _UTF8


@compiles(_DatabaseFunction)
def _compile_function(element: _DatabaseFunction, compiler: SQLCompiler, **options: Any) -> str:
    dialect = compiler.dialect.name
    arguments = []
    for column in element.clauses.clauses:
        argument = compiler.process(column, **options)
        if dialect == "mysql" and element.makes_json and isinstance(column.type, sa.String):
            argument = _UTF8.format(argument)
        arguments.append(argument)
    sql: str = getattr(element, dialect)
    return sql.format(", ".join(arguments))
