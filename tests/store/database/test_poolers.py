# SPDX-License-Identifier: Apache-2.0
"""PgBouncer works in session mode, and is refused in transaction mode."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy.engine import make_url

from tests.api.resources.extension.clouds import EXTENDED
from tests.bodies import claim_of
from tests.databases import Pgbouncer, server_of
from tests.service import client_of, schema_on, start_on
from treeclaim.cli.main import main
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store import DatabaseSettings
from treeclaim.store.takeover.check import check
from treeclaim.store.takeover.findings import Level

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("postgresql", "pgbouncer")]

HOST = "11111111-0000-4000-8000-000000000001"
CLIENTS = 8
CLAIMS = 25


@contextmanager
def pooled(mode):
    """The URLs of a new database: through a pooler in the mode, and direct."""
    server = server_of("postgresql")
    pooler = Pgbouncer(server, mode)
    try:
        with server.database(None) as url:
            schema_on(url)
            yield make_url(url).set(port=pooler.port).render_as_string(), url
    finally:
        pooler.stop()


def test_transaction_pooling_is_refused(tmp_path, capsys):
    with pooled("transaction") as (url, direct):
        refused = pytest.raises(StoreUnavailableError, match="pool_mode = session")
        with refused, start_on(url, tmp_path):
            pass
        file = str(tmp_path / "placement.conf")
        assert main(["db", "sync", "--config-file", file]) == 1
        assert "pool_mode = session" in capsys.readouterr().err
        assert ("sessions", Level.ERROR) in findings(url)
        assert ("sessions", Level.OK) in findings(direct)


def findings(url):
    """Return the findings of a check: subject and level."""
    return [(finding.subject, finding.level) for finding in check(DatabaseSettings(url))]


def test_session_pooling_works(tmp_path):
    with pooled("session") as (url, _):
        with start_on(url, tmp_path) as served:
            client = client_of(served, **EXTENDED)
            host = {
                "uuid": HOST,
                "name": "h",
                "inventories": {"VCPU": {"total": CLIENTS * CLAIMS}},
            }
            response = client.post("/treeclaim/providers", json={"providers": [host]})
            assert response.status_code == 200
            with ThreadPoolExecutor(CLIENTS) as pool:
                answers = list(pool.map(claims_and_reads, [served] * CLIENTS))
            assert {status for client_statuses in answers for status in client_statuses} == {
                200,
                204,
            }
            used = client.get(f"/resource_providers/{HOST}/usages").json()["usages"]
            assert used == {"VCPU": CLIENTS * CLAIMS}
        assert ("sessions", Level.OK) in findings(url)


def claims_and_reads(served):
    """Claim for new consumers, change the host, and read, by one client; return the statuses."""
    client = client_of(served, **EXTENDED)
    statuses = []
    for number in range(CLAIMS):
        claim = claim_of({HOST: {"resources": {"VCPU": 1}}}, project_id=f"p{number % 3}")
        statuses.append(client.put(f"/allocations/{uuid.uuid4()}", json=claim))
        body = {"providers": [{"uuid": HOST, "aggregates": [str(uuid.uuid4())]}]}
        statuses.append(client.post("/treeclaim/providers", json=body))
        statuses.append(client.get("/allocation_candidates?resources=VCPU:1"))
        statuses.append(client.get(f"/resource_providers/{HOST}/allocations"))
        statuses.append(client.get(f"/usages?project_id=p{number % 3}"))
    return [answer.status_code for answer in statuses]
