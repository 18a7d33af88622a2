# SPDX-License-Identifier: Apache-2.0
"""While the database is away: a refusal that says when to come again."""

from pathlib import Path

from tests.api.raw import send
from tests.service import create_application, make_application, start_services
from treeclaim import config

CONSUMER = "20000000-0000-4000-8000-000000000001"


def test_unavailable_database_gives_503_with_retry_after(tmp_path):
    make_application(tmp_path)  # leaves file and database
    configuration = config.load(config_files=[str(tmp_path / "placement.conf")])
    services = start_services(configuration)
    application = create_application(services, configuration)
    assert send(application, "GET", f"/allocations/{CONSUMER}").status == 200
    services.store.engine.dispose()
    database = Path(tmp_path / "placement.db")
    database.rename(tmp_path / "away.db")
    database.mkdir()
    try:
        answer = send(application, "GET", f"/allocations/{CONSUMER}")
        assert answer.status == 503
        assert 1 <= int(answer.header("retry-after")) <= 60
        assert answer.json()["errors"][0]["title"] == "Service Unavailable"
        assert send(application, "GET", "/").status == 200
    finally:
        database.rmdir()
        (tmp_path / "away.db").rename(database)
    answer = send(application, "GET", f"/allocations/{CONSUMER}")
    assert answer.status == 200
    assert answer.header("retry-after") is None
