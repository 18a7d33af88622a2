# SPDX-License-Identifier: Apache-2.0
"""Statements that are left for later are executed in their order, all or none of them."""

import uuid

import pytest
import sqlalchemy as sa

from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.failures.kinds import Failure, failure_of
from treeclaim.store.database.transactions import RetryTransactionError, WriteTransaction
from treeclaim.store.schema.tables import projects

INSERT = CompiledStatement(sa.insert(projects).inline())
RENAME = CompiledStatement(
    sa.update(projects)
    .where(projects.c.external_id == sa.bindparam("before"))
    .values(external_id=sa.bindparam("after"))
)
NAMES = CompiledStatement(sa.select(projects.c.external_id).order_by(projects.c.external_id))


def names_in(store):
    """The projects that are committed."""
    with store.engine.begin() as connection:
        rows = connection.execute(sa.select(projects.c.external_id)).all()
    return {row.external_id for row in rows}


def test_a_query_finds_what_was_left_for_later_before_it(store):
    with store.engine.begin() as connection:
        transaction = WriteTransaction(connection)
        transaction.change_each(INSERT, ({"external_id": name} for name in "ab"))
        transaction.change(RENAME, rows=1, before="b", after="c")
        assert [row.external_id for row in transaction.rows(NAMES)] == ["a", "c"]
        transaction.change(RENAME, rows=1, before="c", after="d")
        transaction.flush()
    assert names_in(store) == {"a", "d"}


def test_what_was_left_for_later_is_committed(store):
    def rename(transaction):
        transaction.change_each(INSERT, ({"external_id": name} for name in "ab"))
        transaction.change(RENAME, rows=1, before="b", after="c")

    store.write(rename)
    assert names_in(store) == {"a", "c"}


def test_another_number_of_rows_undoes_all(store):
    attempts = []

    def rename(transaction):
        name = str(uuid.uuid4())
        attempts.append(name)
        transaction.change_each(INSERT, [{"external_id": name}])
        transaction.change(RENAME, rows=1, before=name if len(attempts) > 1 else "-", after="c")
        transaction.touch_catalogue()

    store.write(rename)
    assert len(attempts) == 2
    assert names_in(store) == {"c"}


def test_a_refused_statement_undoes_all_and_leaves_the_connection_fit(store):
    for _ in range(3):
        with pytest.raises(sa.exc.IntegrityError) as caught, store.engine.begin() as connection:
            transaction = WriteTransaction(connection)
            transaction.change_each(INSERT, [{"external_id": "a"}])
            transaction.change_each(INSERT, [{"external_id": "a"}])
            transaction.change(RENAME, before="a", after="b")
            transaction.flush()
        assert failure_of(caught.value) is Failure.CONFLICT
    assert names_in(store) == set()


def test_rows_that_are_missing_are_told_at_the_latest_by_the_next_query(store):
    with pytest.raises(RetryTransactionError), store.engine.begin() as connection:
        transaction = WriteTransaction(connection)
        transaction.change(RENAME, rows=1, before="nobody", after="c")
        transaction.rows(NAMES)
