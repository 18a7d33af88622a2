# SPDX-License-Identifier: Apache-2.0
"""Checks that a response has no text of a database or its driver."""

import re

from sqlalchemy.engine import make_url

_SQL = re.compile(
    r"\b(select|insert into|update \w+ set|delete from|from \w+ where|begin|commit|rollback|set "
    r"session|sqlalche\.me|psycopg|pymysql|sqlite3?|operationalerror|traceback)\b",
    re.IGNORECASE,
)


def assert_tells_nothing(text, url=None):
    """No host, port, user, name of a database, statement or driver is in a text."""
    assert not _SQL.search(text), text
    if url is None:
        return
    parts = make_url(url)
    port = str(parts.port) if parts.port else None
    for part in (parts.host, port, parts.username, parts.password, parts.database):
        # Whole words: digits of a request id may be those of a port.
        assert not part or not re.search(rf"\b{re.escape(part)}\b", text), (part, text)


def assert_unavailable(answer, url=None):
    """A 503 with a time to retry, and nothing about the database."""
    assert answer.status_code == 503, (answer.status_code, answer.text)
    assert int(answer.headers["retry-after"]) > 0
    assert_tells_nothing(answer.text, url)
