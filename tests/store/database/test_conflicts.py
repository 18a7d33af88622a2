# SPDX-License-Identifier: Apache-2.0
"""Errors that mean that others were first: what ran into one runs again."""

import psycopg
import pymysql
import pytest
from sqlalchemy.exc import OperationalError

from treeclaim.store.database.failures import Failure, failure_of

OF_POSTGRESQL = [psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected]
OF_MYSQL = [1213, 1020]


@pytest.mark.parametrize("error", OF_POSTGRESQL)
def test_postgresql_conflicts_are_recognized(error):
    assert failure_of(OperationalError(None, None, error())) is Failure.CONFLICT


@pytest.mark.parametrize("number", OF_MYSQL)
def test_mysql_conflicts_are_recognized(number):
    error = pymysql.err.OperationalError(number, "words")
    assert failure_of(OperationalError(None, None, error)) is Failure.CONFLICT
