# SPDX-License-Identifier: Apache-2.0
"""What inventories consume, over HTTP (contract page 102, section 2)."""

import sqlite3
import uuid

import pytest

from tests.service import client_of, filled_database_of, start_on

EXTENDED = "placement 1.39, treeclaim 1.0"
BEFORE = "placement 1.39"
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
        body = {
            "allocations": {
                uuid_of(name): {"resources": amounts} for name, amounts in resources.items()
            },
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        return self.call("PUT", f"/allocations/{uuid_of(consumer)}", body | dict(more), version)

    def release(self, consumer):
        assert self.call("DELETE", f"/allocations/{uuid_of(consumer)}").status_code == 204

    def used(self, name, version=PLAIN):
        path = f"/resource_providers/{uuid_of(name)}/usages"
        return self.call("GET", path, version=version).json()["usages"]

    def hosts(self, query, version=EXTENDED):
        found = self.call("GET", f"/allocation_candidates?{query}", version=version).json()
        return [list(one["allocations"]) for one in found["allocation_requests"]]


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


def test_it_is_shown_at_1_4_alone(cloud):
    assert cloud.shown("mig")[LARGE]["consumes"] == consumes("card", **{SLICE: 3, MEMORY: 4})
    assert cloud.shown("card")[SLICE]["consumes"] == []
    assert "consumes" not in cloud.shown("mig", BEFORE)[LARGE]
    one = cloud.call("GET", cloud.path("mig", SMALL)).json()
    assert one["consumes"] == consumes("card", **{SLICE: 1, MEMORY: 1})
    assert "consumes" not in cloud.call("GET", cloud.path("mig", SMALL), version=PLAIN).json()


def test_what_is_consumed_is_used(cloud):
    before = cloud.generation("card")
    assert cloud.claim("a", mig={LARGE: 1, SMALL: 2}).status_code == 204
    assert cloud.used("card") == {SLICE: 5, MEMORY: 6}
    assert cloud.used("mig") == {LARGE: 1, SMALL: 2}
    assert cloud.generation("card") == before
    cloud.release("a")
    assert cloud.used("card") == {SLICE: 0, MEMORY: 0}


@pytest.mark.parametrize("version", [PLAIN, BEFORE, EXTENDED])
def test_no_claim_takes_it_beyond_its_capacity(cloud, version):
    assert cloud.claim("a", mig={LARGE: 2}).status_code == 204
    answer = cloud.claim("b", version, mig={SMALL: 2})
    assert answer.status_code == 409
    assert "Unable to allocate inventory" in answer.json()["errors"][0]["detail"]
    conflict = answer.json()["errors"][0].get("conflict")
    expected = {
        "kind": "over_capacity",
        "provider": uuid_of("card"),
        "resource_class": SLICE,
        "requested": 2,
        "free": 1,
    }
    if version == EXTENDED:
        expected["by"] = {"provider": uuid_of("mig"), "resource_class": SMALL}
    assert conflict == (None if version == PLAIN else expected)
    assert cloud.claim("b", version, card={SLICE: 1}).status_code == 204
    assert cloud.claim("c", version, card={SLICE: 1}).status_code == 409


def test_several_consumers_of_a_write_add_up(cloud):
    body = {
        uuid_of(name): {
            "allocations": {uuid_of("mig"): {"resources": {LARGE: 1, SMALL: amount}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        for name, amount in (("a", 1), ("b", 1))
    }
    answer = cloud.call("POST", "/allocations", body)
    assert answer.status_code == 409
    assert answer.json()["errors"][0]["conflict"]["resource_class"] == SLICE
    assert answer.json()["errors"][0]["conflict"]["requested"] == 8


@pytest.mark.parametrize("version", [PLAIN, EXTENDED])
def test_candidates_judge_by_it(cloud, version):
    assert cloud.hosts(f"resources={SMALL}:2", version)
    assert not cloud.hosts(f"resources={SMALL}:2,{LARGE}:2", version)
    assert not cloud.hosts(f"resources1={LARGE}:2&resources2={SMALL}:2&group_policy=none", version)
    assert cloud.hosts(f"resources1={LARGE}:1&resources2={SMALL}:3&group_policy=none", version)
    assert cloud.claim("a", mig={LARGE: 2}).status_code == 204
    assert not cloud.hosts(f"resources={SMALL}:1", version)
    cloud.release("a")
    assert cloud.hosts(f"resources={SMALL}:1", version)


def test_an_omitted_one_is_kept_and_an_empty_one_removes(cloud):
    kept = cloud.shown("mig")
    body = {"resource_provider_generation": cloud.generation("mig"), "total": 3}
    answer = cloud.call("PUT", cloud.path("mig", LARGE), body)
    assert answer.json()["consumes"] == kept[LARGE]["consumes"]
    for version in (PLAIN, BEFORE):
        plain = {name: {"total": 5} for name in (SMALL, LARGE)}
        answer = cloud.put("mig", version, **plain)
        assert "consumes" not in answer.text
        assert cloud.shown("mig")[SMALL]["consumes"] == kept[SMALL]["consumes"]
    answer = cloud.put("mig", **{SMALL: {"total": 5}, LARGE: {"total": 2, "consumes": []}})
    assert answer.json()["inventories"][SMALL]["consumes"] == kept[SMALL]["consumes"]
    assert answer.json()["inventories"][LARGE]["consumes"] == []
    assert cloud.shown("mig")[LARGE]["consumes"] == []
    assert cloud.claim("a", mig={LARGE: 2, SMALL: 5}).status_code == 204


def test_it_is_refused_below_1_4(cloud):
    new = {LARGE: {"total": 2, "consumes": []}}
    for version in (PLAIN, BEFORE):
        assert cloud.put("mig", version, **new).status_code == 400


def test_what_it_must_be(cloud):
    cloud.make("other", None, VCPU={"total": 1})

    def refused(name="mig", of=LARGE, **entry):
        whole = consumes("card", **{SLICE: 1})[0] | entry
        answer = cloud.put(name, **{of: {"total": 1, "consumes": [whole]}})
        assert answer.status_code == 409, answer.text
        assert answer.json()["errors"][0]["code"] == "treeclaim.consumption"

    cloud.put("mig", **{LARGE: {"total": 2}, SMALL: {"total": 2}})
    refused(provider=uuid_of("nobody"))
    refused(resource_class="CUSTOM_NONE")
    refused(resource_class="VCPU")
    refused(provider=uuid_of("other"), resource_class="VCPU")
    # An inventory of a sibling, or of a child, is none of the provider or an ancestor.
    cloud.make("sibling", "card", VCPU={"total": 1})
    refused(provider=uuid_of("sibling"), resource_class="VCPU")
    cloud.make("child", "mig", VCPU={"total": 1})
    refused(provider=uuid_of("child"), resource_class="VCPU")
    refused(provider=uuid_of("mig"), resource_class=SMALL)
    refused(provider=uuid_of("mig"), resource_class=LARGE)
    # Who is consumed must not consume, whichever is written first.
    chained = {"total": 7, "consumes": consumes("host", VCPU=1)}
    answer = cloud.put("card", **{SLICE: chained, MEMORY: {"total": 8}})
    assert answer.status_code == 409
    assert answer.json()["errors"][0]["code"] == "treeclaim.consumption"


def test_its_form(cloud):
    entry = consumes("card", **{SLICE: 1})[0]
    for wrong in (
        [entry, entry],
        [entry | {"amount": 0}],
        [entry | {"amount": 1_000_001}],
        [{**entry, "more": 1}],
        [{"provider": entry["provider"]}],
        [entry | {"provider": uuid_of(f"{n}")} for n in range(17)],
    ):
        answer = cloud.put("mig", **{LARGE: {"total": 1, "consumes": wrong}})
        assert answer.status_code == 400, wrong


def test_what_is_consumed_cannot_go(cloud):
    expected = {"kind": "consumption", "provider": uuid_of("mig")}
    for version in (PLAIN, BEFORE, EXTENDED):
        for answer in (
            cloud.call("DELETE", cloud.path("card", SLICE), version=version),
            cloud.call("DELETE", cloud.path("card"), version=version),
            cloud.put("card", version, **{MEMORY: {"total": 8}}),
        ):
            assert answer.status_code == 409
            error = answer.json()["errors"][0]
            assert "in use" in error["detail"]
            conflict = error.get("conflict")
            if version == EXTENDED:
                assert conflict.pop("resource_class") in (SMALL, LARGE)
                assert conflict == expected
            else:
                assert conflict is None
    assert cloud.call("DELETE", f"/resource_providers/{uuid_of('mig')}").status_code == 204
    assert cloud.call("DELETE", cloud.path("card")).status_code == 204


def test_no_move_parts_the_two(cloud):
    body = {"name": "mig", "parent_provider_uuid": None}
    path = f"/resource_providers/{uuid_of('mig')}"
    assert cloud.call("PUT", path, body).status_code == 400
    # Neither may it leave what it consumes within its tree.
    beside = body | {"parent_provider_uuid": uuid_of("host")}
    assert cloud.call("PUT", path, beside).status_code == 400
    batch = {"providers": [{"uuid": uuid_of("mig"), "parent_provider_uuid": uuid_of("host")}]}
    assert cloud.call("POST", "/treeclaim/providers", batch).status_code == 400
    cloud.make("between", "card")
    below = body | {"parent_provider_uuid": uuid_of("between")}
    assert cloud.call("PUT", path, below).status_code == 200
    move = {"name": "between", "parent_provider_uuid": uuid_of("host")}
    between = f"/resource_providers/{uuid_of('between')}"
    assert cloud.call("PUT", between, move).status_code == 400
    batch = {"providers": [{"uuid": uuid_of("between"), "parent_provider_uuid": uuid_of("host")}]}
    assert cloud.call("POST", "/treeclaim/providers", batch).status_code == 400
    cloud.make("elsewhere", None)
    body = {"name": "card", "parent_provider_uuid": uuid_of("elsewhere")}
    assert cloud.call("PUT", f"/resource_providers/{uuid_of('card')}", body).status_code == 200
    assert cloud.claim("a", mig={LARGE: 2}).status_code == 204
    assert cloud.used("card") == {SLICE: 6, MEMORY: 8}


def test_a_batch_writes_all_at_once(cloud):
    def entry(name, parent, **inventories):
        return {
            "uuid": uuid_of(name),
            "name": name,
            "parent_provider_uuid": parent and uuid_of(parent),
            "inventories": inventories,
        }

    # Who consumes may come before what it consumes.
    mig = {LARGE: {"total": 2, "consumes": consumes("card2", **{SLICE: 3})}}
    entries = [
        entry("host2", None, VCPU={"total": 8}),
        entry("mig2", "card2", **mig),
        entry("card2", "host2", **{SLICE: {"total": 7}}),
    ]
    path = "/treeclaim/providers"
    answer = cloud.call("POST", path, {"providers": entries})
    assert answer.status_code == 200, answer.text
    assert cloud.shown("mig2")[LARGE]["consumes"] == mig[LARGE]["consumes"]
    answer = cloud.call("POST", path, {"providers": entries})
    assert {one["result"] for one in answer.json()["providers"]} == {"unchanged"}
    gone = [entry("card2", "host2", VCPU={"total": 1})]
    answer = cloud.call("POST", path, {"providers": gone})
    assert answer.status_code == 409
    assert answer.json()["errors"][0]["conflict"]["kind"] == "consumption"
    parted = [{"uuid": uuid_of("mig2"), "parent_provider_uuid": None}]
    assert cloud.call("POST", path, {"providers": parted}).status_code == 400
    less = [entry("mig2", "card2", **{LARGE: {"total": 2, "consumes": []}}), *gone]
    assert cloud.call("POST", path, {"providers": less}).status_code == 200


def test_what_is_consumed_may_be_overcommitted_and_is_a_finding(cloud):
    assert cloud.claim("a", mig={LARGE: 2}).status_code == 204
    more = consumes("card", **{SLICE: 4})
    both = {LARGE: {"total": 2, "consumes": more}, SMALL: {"total": 1}}
    assert cloud.put("mig", **both).status_code == 200
    found = cloud.call("GET", "/treeclaim/audit").json()["findings"]
    assert found["over_capacity"]["items"] == [
        {"provider": uuid_of("card"), "resource_class": SLICE, "capacity": 7, "used": 8}
    ]
    # It may be kept or relieved.
    assert cloud.call("GET", f"/allocations/{uuid_of('a')}").json()["consumer_generation"] == 1


def test_capacity_counts_what_can_be_placed(cloud):
    def fit(query):
        (found,) = (
            cloud.call("POST", "/treeclaim/capacity", {"requests": {"r": query}})
            .json()["capacity"]
            .values()
        )
        return found

    assert fit(f"resources={LARGE}:1")["fits"] == 2
    assert fit(f"resources={SMALL}:1")["fits"] == 7
    assert cloud.claim("a", mig={LARGE: 1}).status_code == 204
    found = fit(f"resources={SMALL}:1")
    assert (found["fits"], found["when_empty"]) == (4, 7)
    assert found["at_most"] >= 4
    assert fit(f"resources1={LARGE}:1&resources2={SMALL}:1&group_policy=none")["fits"] == 0


@pytest.mark.slow
def test_an_explanation_tells_what_is_consumed(cloud):
    def explained(query, version=EXTENDED):
        path = f"/allocation_candidates/explain?{query}"
        found = cloud.call("GET", path, version=version).json()
        (tree,) = found["nearest"]
        return found["funnel"][-1], [(one["reason"], one["detail"]) for one in tree["blocked_by"]]

    assert cloud.claim("a", mig={LARGE: 2}).status_code == 204
    expected = {
        "resource_class": SMALL,
        "consumed_class": SLICE,
        "requested": 2,
        "free": 1,
    }
    funnel, blocked = explained(f"resources={SMALL}:2")
    assert blocked == [("consumed", expected)]
    assert (funnel["reason"], funnel["detail"]) == ("consumed", expected)
    cloud.release("a")
    query = f"resources1={LARGE}:2&resources2={SMALL}:2&group_policy=none"
    _, blocked = explained(query)
    assert [reason for reason, _ in blocked] == ["combined_capacity"]
    # What one group consumes by two classes adds up.
    expected = {"resource_class": LARGE, "consumed_class": SLICE, "requested": 8, "free": 7}
    funnel, blocked = explained(f"resources1={SMALL}:5,{LARGE}:1")
    assert (funnel["reason"], funnel["detail"]) == ("consumed", expected)
    assert expected in [detail for _, detail in blocked]


def test_what_holds_consume_is_held_wherever_that_is_told(cloud):
    def held(answer):
        sums = answer.json()
        (tree,) = sums["parts"]
        assert tree["totals"] == sums["totals"]
        return {
            name: (of_class["held"], of_class["used"]) for name, of_class in sums["totals"].items()
        }

    hold = {"consumer_type": "TREECLAIM_HOLD", "hold": {}}
    assert (
        cloud.claim("h", mig={LARGE: 1, SMALL: 1}, card={SLICE: 1}, more=hold).status_code == 204
    )
    assert cloud.claim("a", mig={SMALL: 2}).status_code == 204
    expected = {SLICE: (5, 7), MEMORY: (5, 7), SMALL: (1, 3), LARGE: (1, 1), "VCPU": (0, 0)}
    path = "/treeclaim/totals?by=tree"
    assert held(cloud.call("GET", path)) == expected
    assert held(cloud.call("GET", f"{path}&resource_class={MEMORY}")) == {MEMORY: (5, 7)}
    given = {"given": {"release": [uuid_of("a")]}}
    found = held(cloud.call("POST", f"{path}&resource_class={SLICE}", given))
    assert found == {SLICE: (5, 5)}
    query = f"/allocation_candidates/explain?resources={SLICE}:1"
    found = cloud.call("GET", query).json()
    (blocked,) = found["nearest"][0]["blocked_by"]
    assert blocked["providers"][0]["held"] == 5
    assert "Without what is held 1 tree would match." in found["advice"]


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
def test_an_inventory_that_was_deleted_and_comes_back_consumes_nothing(
    cloud, delete, add, version
):
    delete(cloud)
    add(cloud, version)
    assert cloud.shown("mig")[SMALL]["consumes"] == []
    assert cloud.claim("a", mig={SMALL: 7}).status_code == 204
    assert cloud.used("card") == {SLICE: 0, MEMORY: 0}


@pytest.mark.parametrize("create", ["alone", "by a batch"])
def test_a_provider_with_the_id_of_a_former_one_has_nothing_of_it(cloud, create):
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
