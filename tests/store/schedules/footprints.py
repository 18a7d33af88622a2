# SPDX-License-Identifier: Apache-2.0
"""Which tables a statement reads, and which it writes or locks: whether the order can matter."""

import re
from dataclasses import dataclass
from functools import cache

from tests.store.schedules.sessions import BEGIN_WRITING, COMMIT, ROLLBACK
from treeclaim.store.schema.tables import own, placement

_NAMES = sorted([*placement.tables, *own.tables], key=len, reverse=True)
_TABLE = re.compile(rf"\b({'|'.join(_NAMES)})\b(?!\.)", re.IGNORECASE)
_WRITES = re.compile(
    r"^\s*(INSERT|UPDATE|DELETE)\b|\bFOR (UPDATE|SHARE|KEY SHARE|NO KEY UPDATE)\b|LOCK IN SHARE",
    re.IGNORECASE,
)

EVERYTHING = frozenset(_NAMES)


@dataclass(frozen=True)
class Footprint:
    """Tables that some statements read and write; locking a row is writing it."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()

    def __or__(self, other):
        return Footprint(self.reads | other.reads, self.writes | other.writes)

    def meets(self, other):
        """Whether the order of the two can make a difference."""
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)


@cache
def footprint_of(statement):
    """The tables of one statement; the ends of a transaction show, or let go, all it wrote."""
    if statement in {BEGIN_WRITING, COMMIT, ROLLBACK}:
        return Footprint(EVERYTHING, EVERYTHING)
    tables = frozenset(name.lower() for name in _TABLE.findall(statement))
    if _WRITES.search(statement) is None:
        return Footprint(reads=tables)
    return Footprint(tables, tables)
