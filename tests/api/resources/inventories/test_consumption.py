# SPDX-License-Identifier: Apache-2.0
"""A provider that gets the id of a former one has nothing of it (contract page 102, section 2)."""

import sqlite3

import pytest

from tests.api.resources.extension.clouds import EXTENDED, uuid_of
from tests.service import client_of, fresh_database, start_on

SLICES, PARTS = "CUSTOM_SLICE", "CUSTOM_PART"


def card():
    """Entries of a card, and of a partition that consumes its slices."""
    consumes = [{"provider": uuid_of("card"), "resource_class": SLICES, "amount": 1}]
    part = {"uuid": uuid_of("part"), "name": "part", "parent_provider_uuid": uuid_of("card")}
    return [
        {"uuid": uuid_of("card"), "name": "card", "inventories": {SLICES: {"total": 7}}},
        part
        | {"inventories": {PARTS: {"total": 7, "consumes": consumes}}, "attributes": {"gib": 80}},
    ]


@pytest.mark.parametrize("create", ["alone", "by a batch"])
def test_provider_with_reused_id_inherits_nothing(tmp_path, create):
    """SQLite gives ids again, and another program deletes providers without these parts."""
    url = fresh_database(tmp_path)
    with start_on(url, tmp_path) as application, client_of(application, **EXTENDED) as client:
        body = {"providers": card(), "create_names": True}
        assert client.post("/treeclaim/providers", json=body).is_success
        part = f"/treeclaim/providers/{uuid_of('part')}"
        assert client.put(f"{part}/conditions/FAILING", json={"effect": "no_new"}).is_success
        with sqlite3.connect(url.removeprefix("sqlite:///")) as database:
            (former,) = database.execute(
                "DELETE FROM resource_providers WHERE uuid = ? RETURNING id", [uuid_of("part")]
            ).fetchone()
            database.execute("DELETE FROM inventories WHERE resource_provider_id = ?", [former])
        entry = {name: card()[1][name] for name in ("uuid", "name", "parent_provider_uuid")}
        if create == "alone":
            assert client.post("/resource_providers", json=entry).is_success
        else:
            assert client.post("/treeclaim/providers", json={"providers": [entry]}).is_success
        with sqlite3.connect(url.removeprefix("sqlite:///")) as database:
            query = "SELECT id FROM resource_providers WHERE uuid = ?"
            assert database.execute(query, [uuid_of("part")]).fetchone() == (former,)
        stock = {PARTS: {"total": 7}}
        body = {"providers": [{"uuid": uuid_of("part"), "inventories": stock}]}
        assert client.post("/treeclaim/providers", json=body).is_success
        path = f"/treeclaim/providers?uuid={uuid_of('part')}"
        include = "inventories,attributes,conditions"
        (shown,) = client.get(f"{path}&include={include}").json()["providers"]
        assert (shown["attributes"], shown["conditions"]) == ({}, {})
        assert shown["inventories"][PARTS]["consumes"] == []
