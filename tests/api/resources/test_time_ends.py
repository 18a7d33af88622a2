# SPDX-License-Identifier: Apache-2.0
"""Holds and conditions end by themselves when their time is over (contract pages 100 and 102)."""

from tests.bodies import add_hosts, claim_of
from tests.servers import eventually
from tests.service import client_of, services_on
from treeclaim.store.operations.allocations import holds as hold_writes

VERSION = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
HOST = "10000000-0000-4000-8000-000000000001"
HOLD, TAKER = (f"/allocations/20000000-0000-4000-8000-00000000000{number}" for number in (1, 2))


def test_expired_hold_is_gone_without_a_write_and_watchers_see_it(tmp_path, monkeypatch):
    """A thread of the process ends holds; the clock is that of the database, set ahead here."""
    with services_on(tmp_path) as (services, application):
        client = client_of(application, **VERSION)
        add_hosts(client, HOST, VCPU=10)
        terms = {"until": "2999-01-01T00:00:00Z", "returns": True}
        four, two = ({HOST: {"resources": {"VCPU": amount}}} for amount in (4, 2))
        hold = claim_of(four, consumer_type="TREECLAIM_HOLD", hold=terms)
        assert client.put(HOLD, json=hold).status_code == 204
        taker = claim_of(two, from_holds=[HOLD.rpartition("/")[2]])
        assert client.put(TAKER, json=taker).status_code == 204
        cursor = client.get("/treeclaim/providers?limit=1").json()["cursor"]
        ended = services.store.read_clock().replace(year=3000)
        monkeypatch.setattr(hold_writes, "read_clock", lambda _connection: ended)
        monkeypatch.setattr(services.store, "read_clock", lambda: ended)
        eventually(lambda: client.get(HOLD).json()["allocations"] == {}, "the hold has ended", 60)
        assert client.get(HOLD).json()["hold"] is None
        assert client.get(TAKER).json()["drawn_from"] == {}
        assert HOST in client.get(f"/treeclaim/changes?since={cursor}").text
