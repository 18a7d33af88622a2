# SPDX-License-Identifier: Apache-2.0
"""Text that a database cannot compare is the name of nothing in it.

Clients name things by any text. MariaDB's older tables lack what is beyond the basic plane of
Unicode, and comparing with such text is an error; PostgreSQL has no NUL character; no database has
half of a surrogate pair. Nothing of that name can be there. So a statement that only looks is asked
again with a name that nothing has; one that would store such a text is refused as before.
"""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from treeclaim.store.database.failures import INCOMPARABLE_MYSQL, number_of

NOTHING = f"nothing-{uuid.uuid4()}"
"""A text that nothing is called by; nobody can know it, and so nobody can call anything so."""

_LOOKING = ("SELECT", "(SELECT", "WITH", "DELETE")
_LAST_OF_BASIC_PLANE = 0xFFFF
_SURROGATES = range(0xD800, 0xE000)

Test = Callable[[str], bool]
"""Whether a text may be what the database cannot compare."""


def find_nothing_by_incomparable_text(engine: Engine) -> None:
    """Let statements that only look find nothing by text that the database cannot compare."""
    is_strange = _TESTS[engine.dialect.name]

    @sa.event.listens_for(engine, "do_execute")
    def _executing(cursor: Any, statement: str, parameters: Any, _context: Any) -> bool:
        try:
            cursor.execute(statement, parameters)
        except (engine.dialect.loaded_dbapi.Error, UnicodeEncodeError) as error:
            comparable = _without(parameters, is_strange)
            if not (_may_be_of_text(error) and comparable != parameters and _looks(statement)):
                if isinstance(error, UnicodeEncodeError):
                    raise engine.dialect.loaded_dbapi.DataError(str(error)) from error
                raise
            cursor.execute(statement, comparable)
        return True


def _looks(statement: str) -> bool:
    return statement.lstrip()[: len("(SELECT")].upper().startswith(_LOOKING)


def _may_be_of_text(error: BaseException) -> bool:
    """Tell whether the text of a parameter may be to blame; PostgreSQL's client refuses NUL."""
    if isinstance(error, UnicodeEncodeError):
        return True
    number = number_of(error)
    if number is not None:
        return number in INCOMPARABLE_MYSQL
    return getattr(error, "sqlstate", None) is None and "NUL" in str(error)


def _without(parameters: Any, is_strange: Test) -> Any:
    """Return parameters with the name of nothing for each text that cannot be compared."""
    if isinstance(parameters, Mapping):
        return {name: _comparable(value, is_strange) for name, value in parameters.items()}
    return type(parameters)(_comparable(value, is_strange) for value in parameters)


def _comparable(value: Any, is_strange: Test) -> Any:
    return NOTHING if isinstance(value, str) and is_strange(value) else value


def _is_broken(text: str) -> bool:
    return any(ord(character) in _SURROGATES for character in text)


def _is_beyond(text: str) -> bool:
    return any(ord(character) > _LAST_OF_BASIC_PLANE for character in text) or _is_broken(text)


def _is_nul_or_broken(text: str) -> bool:
    return "\0" in text or _is_broken(text)


_TESTS: dict[str, Test] = {
    "sqlite": _is_broken,
    "postgresql": _is_nul_or_broken,
    "mysql": _is_beyond,
}
