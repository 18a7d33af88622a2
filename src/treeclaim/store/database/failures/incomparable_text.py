# SPDX-License-Identifier: Apache-2.0
"""Lets text that a database cannot compare match nothing.

Clients send names of any text. Older tables of MariaDB cannot hold characters beyond the basic
plane of Unicode, and comparing with such text is an error; PostgreSQL has no NUL character; no
database has half of a surrogate pair. No object can have such a name. So a query with such a name
runs again with a name that no object has; a statement that would store such text is refused.
"""

import re
import sys
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from treeclaim.store.database.dialects.systems import System, system_of
from treeclaim.store.database.failures.kinds import INCOMPARABLE_MYSQL, number_of

UNUSED_NAME = f"nothing-{uuid.uuid4()}"
"""A name that no object has: it is drawn at random, so no client can know it."""

_QUERIES = ("SELECT", "(SELECT", "WITH", "DELETE")
_LAST_OF_BASIC_PLANE = 0xFFFF
_SURROGATES = range(0xD800, 0xE000)

Test = Callable[[str], bool]
"""Returns whether the database may be unable to compare a text."""


def match_nothing_by_incomparable_text(engine: Engine) -> None:
    """Let queries and deletions match nothing by text that the database cannot compare."""
    is_strange = _test_of(system_of(engine))

    @sa.event.listens_for(engine, "do_execute")
    def _executing(cursor: Any, statement: str, parameters: Any, _context: Any) -> bool:
        try:
            cursor.execute(statement, parameters)
        except (engine.dialect.loaded_dbapi.Error, UnicodeEncodeError) as error:
            comparable = _without(parameters, is_strange)
            if not (_may_be_of_text(error) and comparable != parameters and _is_query(statement)):
                if isinstance(error, UnicodeEncodeError):
                    raise engine.dialect.loaded_dbapi.DataError(str(error)) from error
                raise
            cursor.execute(statement, comparable)
        return True


def _is_query(statement: str) -> bool:
    return statement.lstrip()[: len("(SELECT")].upper().startswith(_QUERIES)


def _may_be_of_text(error: BaseException) -> bool:
    """Return whether the text of a parameter may be the cause; PostgreSQL's client refuses NUL."""
    if isinstance(error, UnicodeEncodeError):
        return True
    number = number_of(error)
    if number is not None:
        return number in INCOMPARABLE_MYSQL
    return getattr(error, "sqlstate", None) is None and "NUL" in str(error)


def _without(parameters: Any, is_strange: Test) -> Any:
    """Return parameters with the unused name in place of each text that cannot be compared."""
    if isinstance(parameters, Mapping):
        return {name: _comparable(value, is_strange) for name, value in parameters.items()}
    return type(parameters)(_comparable(value, is_strange) for value in parameters)


def _comparable(value: Any, is_strange: Test) -> Any:
    return UNUSED_NAME if isinstance(value, str) and is_strange(value) else value


def _test_of(system: System) -> Test:
    """Return a function that tells whether a text has characters that a database cannot store."""
    missing = [f"\\U{_SURROGATES.start:08x}-\\U{_SURROGATES.stop - 1:08x}"]
    if not system.holds_nul:
        missing.append("\\x00")
    if not system.holds_all_planes:
        missing.append(f"\\U{_LAST_OF_BASIC_PLANE + 1:08x}-\\U{sys.maxunicode:08x}")
    pattern = re.compile(f"[{''.join(missing)}]")
    return lambda text: pattern.search(text) is not None
