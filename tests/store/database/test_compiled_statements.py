# SPDX-License-Identifier: Apache-2.0
"""Statements whose SQL is kept find what the same statements find without that."""

import pytest
import sqlalchemy as sa

from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.driver import send

NUMBERS = sa.table("numbers", sa.column("number"))
STATEMENT = (
    sa.select(NUMBERS.c.number)
    .where(
        NUMBERS.c.number.in_(sa.bindparam("some", expanding=True)),
        NUMBERS.c.number.not_in(sa.bindparam("others", expanding=True)),
    )
    .order_by(NUMBERS.c.number)
)
COUNT = 6000


@pytest.fixture
def numbers():
    """A connection to a database in which there are numbers."""
    with sa.create_engine("sqlite://").connect() as connection:
        connection.execute(sa.text("CREATE TABLE numbers (number INTEGER PRIMARY KEY)"))
        rows = [{"number": number} for number in range(COUNT)]
        connection.execute(sa.text("INSERT INTO numbers VALUES (:number)"), rows)
        yield connection


@pytest.mark.slow
def test_lists_of_any_length_mean_what_is_in_them(numbers):
    statement = CompiledStatement(STATEMENT)
    for length in [*range(18), 1000, 4095, 4096, 4097, 5000, 3, 2]:
        some = list(range(length))
        for others in ([], [1], [0, 2, 5]):
            ready = statement.ready(numbers.dialect, {"some": some, "others": others})
            found = [row.number for row in send(numbers, ready).rows]
            assert found == [number for number in some if number not in others], length


def test_a_statement_is_compiled_once_for_lists_of_all_lengths(numbers, monkeypatch):
    """Groups of claims have ever new lengths, and searches would wait while one is compiled."""
    compile_ = numbers.dialect.statement_compiler
    compiled = []

    def counted(*arguments, **options):
        compiled.append(arguments)
        return compile_(*arguments, **options)

    monkeypatch.setattr(numbers.dialect, "statement_compiler", counted)
    statement = CompiledStatement(STATEMENT)
    texts = {
        statement.ready(numbers.dialect, {"some": [1] * length, "others": [2]}).sql
        for length in range(1, 65)
    }
    assert len(texts) == 7
    assert len(compiled) == 1
