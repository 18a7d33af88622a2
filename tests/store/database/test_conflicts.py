# SPDX-License-Identifier: Apache-2.0
"""Errors that mean that others were first: what ran into one runs again."""

import psycopg
import pymysql
import pytest
from sqlalchemy.exc import OperationalError

from treeclaim.store.database.failures.kinds import Failure, failure_of

OF_POSTGRESQL = [psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected]
OF_MYSQL = [1213, 1020]
OF_TIDB = [8002, 8022, 8028, 9007]


@pytest.mark.parametrize("error", OF_POSTGRESQL)
def test_conflicts_of_postgresql_and_its_kind_are_known(error):
    assert failure_of(OperationalError(None, None, error())) is Failure.CONFLICT


@pytest.mark.parametrize("number", OF_MYSQL + OF_TIDB)
def test_conflicts_of_mysql_and_its_kind_are_known(number):
    error = pymysql.err.OperationalError(number, "words")
    assert failure_of(OperationalError(None, None, error)) is Failure.CONFLICT


def test_an_outcome_that_is_unknown_is_no_conflict():
    # CockroachDB's, of a COMMIT that may have been done.
    error = psycopg.errors.StatementCompletionUnknown()
    assert failure_of(OperationalError(None, None, error)) is Failure.OTHER
