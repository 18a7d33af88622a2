# SPDX-License-Identifier: Apache-2.0
"""Makes text that a database cannot compare match nothing.

Old tables of MariaDB reject characters beyond the basic plane of Unicode, PostgreSQL rejects NUL, and every
database rejects a lone surrogate. No object can have such a name, so a query for it is executed again with
an unused name. A statement that would store such text fails.
"""

import re
import uuid
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from treeclaim.store.database.failures import INCOMPARABLE_MYSQL, read_error_number

UNUSED_NAME = f"nothing-{uuid.uuid4()}"
"""A random name, which no object has."""

_QUERIES = ("SELECT", "(SELECT", "WITH", "DELETE")
_SURROGATES = r"\ud800-\udfff"
_MISSING_CHARACTERS = {"postgresql": r"\x00", "mysql": r"\U00010000-\U0010ffff"}
"""Further characters that some tables cannot compare, by dialect."""


def replace_incomparable_text(engine: Engine) -> None:
    """Replace incomparable text by `UNUSED_NAME` in queries and deletions."""
    incomparable = re.compile(f"[{_SURROGATES}{_MISSING_CHARACTERS.get(engine.dialect.name, '')}]")

    @sa.event.listens_for(engine, "do_execute")
    def _execute(cursor: Any, statement: str, parameters: Any, _context: Any) -> bool:
        try:
            cursor.execute(statement, parameters)
        except (engine.dialect.loaded_dbapi.Error, UnicodeEncodeError) as error:
            comparable = _replace(parameters, incomparable)
            if not (_is_text_error(error) and comparable != parameters and _is_query(statement)):
                if isinstance(error, UnicodeEncodeError):
                    raise engine.dialect.loaded_dbapi.DataError(str(error)) from error
                raise
            cursor.execute(statement, comparable)
        return True


def _is_query(statement: str) -> bool:
    return statement.lstrip()[: len("(SELECT")].upper().startswith(_QUERIES)


def _is_text_error(error: BaseException) -> bool:
    """Return whether the text of a parameter may be the cause of an error."""
    if isinstance(error, UnicodeEncodeError):
        return True
    number = read_error_number(error)
    if number is not None:
        return number in INCOMPARABLE_MYSQL
    # psycopg rejects NUL itself.
    return getattr(error, "sqlstate", None) is None and "NUL" in str(error)


def _replace(parameters: Any, incomparable: re.Pattern[str]) -> Any:
    def replace(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [replace(item) for item in value]
        is_incomparable = isinstance(value, str) and incomparable.search(value)
        return UNUSED_NAME if is_incomparable else value

    if isinstance(parameters, Mapping):
        return {name: replace(value) for name, value in parameters.items()}
    return type(parameters)(map(replace, parameters))
