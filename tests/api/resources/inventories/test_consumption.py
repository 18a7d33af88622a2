# SPDX-License-Identifier: Apache-2.0
"""Inventories and providers that go and come again have nothing of the former ones (page 102, section 2)."""

import sqlite3
import uuid

import pytest

from tests.bodies import claim_of
from tests.service import client_of, filled_database_of, start_on

EXTENDED = "placement 1.39, treeclaim 1.0"
PLAIN = "placement 1.39"
SLICE, MEMORY = "CUSTOM_GPU_SLICE", "CUSTOM_GPU_MEMORY_SLICE"
SMALL, LARGE = "CUSTOM_MIG_1G", "CUSTOM_MIG_3G"


def uuid_of(name):
    return str(uuid.uuid5(uuid.UUID(int=102), name))


def consumes(provider, **amounts):
    """Entries, by name of the provider and of classes."""
    return [
        {"provider": uuid_of(provider), "resource_class": name, "amount": amount}
        for name, amount in sorted(amounts.items())
    ]


class Cloud:
    """A client of a service, with providers by their names, and the file of its database."""

    def __init__(self, client, database):
        self.client = client
        self.database = database

    def call(self, method, path, body=None, version=EXTENDED):
        return self.client.request(
            method, path, json=body, headers={"openstack-api-version": version}
        )

    def make(self, name, parent=None, **inventories):
        body = {"name": name, "uuid": uuid_of(name)}
        body["parent_provider_uuid"] = parent and uuid_of(parent)
        assert self.call("POST", "/resource_providers", body).status_code == 200
        if inventories:
            answer = self.put(name, **inventories)
            assert answer.status_code == 200, answer.text

    def generation(self, name):
        return self.call("GET", f"/resource_providers/{uuid_of(name)}").json()["generation"]

    def put(self, name, version=EXTENDED, **inventories):
        body = {
            "resource_provider_generation": self.generation(name),
            "inventories": inventories,
        }
        return self.call("PUT", self.path(name), body, version)

    def path(self, name, resource_class=None):
        end = "" if resource_class is None else f"/{resource_class}"
        return f"/resource_providers/{uuid_of(name)}/inventories{end}"

    def shown(self, name, version=EXTENDED):
        return self.call("GET", self.path(name), version=version).json()["inventories"]

    def claim(self, consumer, version=EXTENDED, more=(), **resources):
        """Let a consumer hold something: amounts by class and name of the provider; more members."""
        body = claim_of(
            {uuid_of(name): {"resources": amounts} for name, amounts in resources.items()}
        )
        return self.call("PUT", f"/allocations/{uuid_of(consumer)}", body | dict(more), version)

    def used(self, name, version=PLAIN):
        path = f"/resource_providers/{uuid_of(name)}/usages"
        return self.call("GET", path, version=version).json()["usages"]


@pytest.fixture
def cloud(tmp_path):
    """A host with a card of seven slices, which is divided in two ways."""
    url = filled_database_of(divided_card, tmp_path)
    with start_on(url, tmp_path) as application, client_of(application) as client:
        yield Cloud(client, next(tmp_path.glob("*.db")))


def divided_card(client):
    for name in (SLICE, MEMORY, SMALL, LARGE):
        client.put(f"/resource_classes/{name}")
    made = Cloud(client, None)
    made.make("host", None, VCPU={"total": 64})
    made.make("card", "host", **{SLICE: {"total": 7}, MEMORY: {"total": 8}})
    small = {"total": 7, "consumes": consumes("card", **{SLICE: 1, MEMORY: 1})}
    large = {"total": 2, "consumes": consumes("card", **{SLICE: 3, MEMORY: 4})}
    made.make("mig", "card", **{SMALL: small, LARGE: large})


def delete_one(cloud):
    assert cloud.call("DELETE", cloud.path("mig", SMALL)).status_code == 204


def delete_all(cloud):
    assert cloud.call("DELETE", cloud.path("mig")).status_code == 204


def replace_all(cloud):
    assert cloud.put("mig", PLAIN, **{LARGE: {"total": 2}}).status_code == 200


def apply_others(cloud):
    entry = {"uuid": uuid_of("mig"), "inventories": {LARGE: {"total": 2}}}
    body = {"providers": [entry]}
    assert cloud.call("POST", "/treeclaim/providers", body).status_code == 200


def reshape(cloud):
    inventories = {
        uuid_of("mig"): {
            "resource_provider_generation": cloud.generation("mig"),
            "inventories": {LARGE: {"total": 2}},
        }
    }
    body = {"inventories": inventories, "allocations": {}}
    headers = {"openstack-api-version": PLAIN, "x-roles": "admin,service"}
    assert cloud.client.post("/reshaper", json=body, headers=headers).status_code == 204


def delete_beside(cloud):
    """As another program does, which knows nothing of what inventories consume."""
    with sqlite3.connect(cloud.database) as database:
        database.execute(
            "DELETE FROM inventories WHERE resource_class_id ="
            " (SELECT id FROM resource_classes WHERE name = ?)",
            [SMALL],
        )


def add_one(cloud, version):
    body = {
        "resource_provider_generation": cloud.generation("mig"),
        "resource_class": SMALL,
        "total": 7,
    }
    assert cloud.call("POST", cloud.path("mig"), body, version).status_code == 201


def replace_with_it(cloud, version):
    assert cloud.put("mig", version, **{SMALL: {"total": 7}}).status_code == 200


def apply_it(cloud, _version):
    entry = {"uuid": uuid_of("mig"), "inventories": {SMALL: {"total": 7}}}
    answer = cloud.call("POST", "/treeclaim/providers", {"providers": [entry]})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "delete", [delete_one, delete_all, replace_all, apply_others, reshape, delete_beside]
)
@pytest.mark.parametrize("add", [add_one, replace_with_it, apply_it])
@pytest.mark.parametrize("version", [PLAIN, EXTENDED])
def test_recreated_inventory_consumes_nothing(cloud, delete, add, version):
    delete(cloud)
    add(cloud, version)
    assert cloud.shown("mig")[SMALL]["consumes"] == []
    assert cloud.claim("a", mig={SMALL: 7}).status_code == 204
    assert cloud.used("card") == {SLICE: 0, MEMORY: 0}


@pytest.mark.parametrize("create", ["alone", "by a batch"])
def test_provider_with_reused_id_inherits_nothing(cloud, create):
    """SQLite gives ids again, and another program deletes providers without these parts."""
    own = "/treeclaim/providers/" + uuid_of("mig")
    shown = cloud.call("GET", f"{own}/attributes").json()
    body = shown | {"attributes": {"mem_gib": 80}}
    assert cloud.call("PUT", f"{own}/attributes", body).status_code == 200
    condition = {"effect": "no_new"}
    assert cloud.call("PUT", f"{own}/conditions/FAILING", condition).status_code == 204
    with sqlite3.connect(cloud.database) as database:
        (former,) = database.execute(
            "DELETE FROM resource_providers WHERE uuid = ? RETURNING id", [uuid_of("mig")]
        ).fetchone()
        database.execute("DELETE FROM inventories WHERE resource_provider_id = ?", [former])
        database.execute("DELETE FROM resource_providers WHERE id > ?", [former])
    if create == "alone":
        cloud.make("mig", "card")
    else:
        entry = {"uuid": uuid_of("mig"), "name": "mig", "parent_provider_uuid": uuid_of("card")}
        answer = cloud.call("POST", "/treeclaim/providers", {"providers": [entry]})
        assert answer.status_code == 200, answer.text
    with sqlite3.connect(cloud.database) as database:
        (new,) = database.execute(
            "SELECT id FROM resource_providers WHERE uuid = ?", [uuid_of("mig")]
        ).fetchone()
    assert new == former
    path = f"/treeclaim/providers?in_tree={uuid_of('mig')}&include=attributes,conditions"
    (mig,) = (
        row for row in cloud.call("GET", path).json()["providers"] if row["uuid"] == uuid_of("mig")
    )
    assert (mig["attributes"], mig["conditions"]) == ({}, {})
    assert cloud.put("mig", PLAIN, **{SMALL: {"total": 7}}).status_code == 200
    assert cloud.shown("mig")[SMALL]["consumes"] == []
