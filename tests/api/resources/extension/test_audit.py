# SPDX-License-Identifier: Apache-2.0
"""Audit and repairs (contract page 99, section 5): findings of rows that no request makes, and repairs.

`gabbits/audit.yaml` has the findings that come about by requests.
"""

import datetime as dt
import itertools
import time

import pytest
import sqlalchemy as sa

from tests.api.resources.extension.clouds import AGGREGATES, EXTENDED, cloud_on, uuid_of
from tests.api.resources.extension.test_pages_and_writers import busy
from tests.bodies import claim_of
from tests.databases import EACH_DATABASE
from treeclaim.model import timing
from treeclaim.model.extension.audit import REPAIRABLE, FindingKind
from treeclaim.store.schema import tables

PATH = "/treeclaim/audit"
REPAIRS = f"{PATH}/repairs"
KINDS_OF_FINDINGS = [kind.value for kind in FindingKind]
NUMBERS = itertools.count()


@pytest.fixture(scope="module", params=EACH_DATABASE)
def shared_cloud(request, tmp_path_factory):
    with cloud_on(request.param, tmp_path_factory.mktemp("cloud")) as cloud:
        yield cloud


@pytest.fixture
def cloud(shared_cloud):
    shared_cloud.providers.clear()
    shared_cloud.consumers.clear()
    kept_names = {"alembic_version", "traits", "resource_classes"}
    emptied_tables = (
        table for table in reversed(tables.placement.sorted_tables) if table.name not in kept_names
    )
    shared_cloud.by_hand(
        sa.update(tables.resource_providers).values(
            root_provider_id=None, parent_provider_id=None
        ),
        *(sa.delete(table) for table in emptied_tables),
        sa.delete(tables.traits).where(tables.traits.c.name.startswith("CUSTOM_")),
        sa.delete(tables.resource_classes).where(tables.resource_classes.c.id >= 10_000),
        sa.delete(tables.feed),
        sa.delete(tables.streams),
        sa.delete(tables.attributes),
    )
    return shared_cloud


def host(cloud, name=None, parent=None, **inventory):
    """A provider with 16 VCPU."""
    name = name or f"host-{next(NUMBERS)}"
    body = {"name": name, "uuid": uuid_of(name), "parent_provider_uuid": parent}
    assert cloud.client.post("/resource_providers", json=body).is_success
    stock(cloud, uuid_of(name), **({"total": 16} | inventory))
    return uuid_of(name)


def stock(cloud, provider, **inventory):
    path = f"/resource_providers/{provider}"
    generation = cloud.client.get(path).json()["generation"]
    body = {"inventories": {"VCPU": inventory}, "resource_provider_generation": generation}
    answer = cloud.client.put(f"{path}/inventories", json=body)
    assert answer.is_success, answer.text


def join(cloud, provider, *aggregates):
    path = f"/resource_providers/{provider}"
    generation = cloud.client.get(path).json()["generation"]
    body = {"aggregates": list(aggregates), "resource_provider_generation": generation}
    return cloud.client.put(f"{path}/aggregates", json=body)


def claim(cloud, consumer, *providers, amount=4, generation=None, kind="INSTANCE"):
    body = claim_of(
        {uuid: {"resources": {"VCPU": amount}} for uuid in providers},
        consumer_generation=generation,
        consumer_type=kind,
    )
    return cloud.client.put(f"/allocations/{consumer}", json=body)


def claimed(cloud, *providers, **options):
    consumer = uuid_of(f"consumer {next(NUMBERS)}")
    answer = claim(cloud, consumer, *providers, **options)
    assert answer.is_success, answer.text
    return consumer


def id_of(cloud, provider):
    with cloud.engine.connect() as connection:
        table = tables.resource_providers
        return connection.scalar(sa.select(table.c.id).where(table.c.uuid == provider))


def findings(cloud, kind):
    return cloud.ask(PATH, kind=kind)["findings"][kind]["items"]


def repair_all(cloud, kind, **options):
    """Repair all findings of a kind; return the results."""
    repairs = [{"kind": kind, **item} for item in findings(cloud, kind)]
    answer = cloud.post(REPAIRS, {"repairs": repairs, **options})["repairs"]
    assert [{**repair, "result": 0} for repair in answer] == [
        {**repair, "result": 0} for repair in repairs
    ]
    return [repair["result"] for repair in answer]


# -- finding -------------------------------------------------------------------------------


def test_allocations_without_inventory_are_reported(cloud):
    provider = host(cloud)
    consumer = claimed(cloud, provider)
    cloud.by_hand(sa.delete(tables.inventories))
    assert findings(cloud, "without_inventory") == [
        {"consumer": consumer, "provider": provider, "resource_class": "VCPU", "used": 4}
    ]


def inventory_of_nobody(provider_id, class_id):
    return sa.insert(tables.inventories).values(
        resource_provider_id=provider_id,
        resource_class_id=class_id,
        total=1,
        reserved=0,
        min_unit=1,
        max_unit=1,
        step_size=1,
        allocation_ratio=1.0,
    )


def leave_rows_of_nothing(cloud):
    """Rows as a provider leaves them that was deleted by hand."""
    cloud.by_hand(
        inventory_of_nobody(990, 0),
        sa.insert(tables.allocations).values(
            resource_provider_id=991, resource_class_id=0, consumer_id=uuid_of("lost"), used=1
        ),
        sa.insert(tables.resource_provider_aggregates).values(
            resource_provider_id=992, aggregate_id=1
        ),
        sa.insert(tables.attributes).values(resource_provider_id=993, name="ecc", value="true"),
    )


def test_rows_without_a_provider_are_reported(cloud):
    leave_rows_of_nothing(cloud)
    assert findings(cloud, "without_provider") == [
        {"table": "inventories", "provider_id": 990},
        {"table": "allocations", "provider_id": 991},
        {"table": "resource_provider_aggregates", "provider_id": 992},
        {"table": "treeclaim_attributes", "provider_id": 993},
    ]


def test_allocations_without_a_consumer_record_are_reported(cloud):
    consumer = claimed(cloud, host(cloud))
    cloud.by_hand(sa.delete(tables.consumers))
    assert findings(cloud, "without_consumer") == [{"consumer": consumer}]


def leave_an_empty_consumer(cloud, name="left behind"):
    """A record that an older release left."""
    cloud.by_hand(
        sa.insert(tables.consumers).values(
            uuid=uuid_of(name), project_id=1, user_id=1, generation=0
        )
    )
    return uuid_of(name)


def test_empty_consumer_is_reported(cloud):
    consumer = leave_an_empty_consumer(cloud)
    assert findings(cloud, "empty_consumer") == [{"consumer": consumer}]


def set_row(cloud, provider, **values):
    table = tables.resource_providers
    cloud.by_hand(sa.update(table).where(table.c.uuid == provider).values(**values))


def test_broken_root_is_reported(cloud):
    root, other = host(cloud), host(cloud)
    child = host(cloud, parent=root)
    grandchild = host(cloud, parent=child)
    set_row(cloud, grandchild, root_provider_id=id_of(cloud, other))
    set_row(cloud, other, root_provider_id=None)
    assert findings(cloud, "broken_root") == [{"provider": other}, {"provider": grandchild}]
    assert findings(cloud, "broken_parent") == []


def test_broken_parent_reports_only_members_of_the_cycle(cloud):
    root = host(cloud)
    child = host(cloud, parent=root)
    grandchild = host(cloud, parent=child)
    below = host(cloud, parent=grandchild)
    set_row(cloud, child, parent_provider_id=id_of(cloud, grandchild))
    assert findings(cloud, "broken_parent") == [{"provider": child}, {"provider": grandchild}]
    assert findings(cloud, "broken_root") == []
    assert below


def orphans(cloud, living, **options):
    answer = cloud.post(f"{PATH}?kind=orphaned", {"living": living, "older_than": 0, **options})
    return answer["findings"]["orphaned"]["items"]


def make_older(cloud, seconds):
    moment = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    earlier = moment - dt.timedelta(seconds=seconds)
    cloud.by_hand(sa.update(tables.allocations).values(created_at=earlier, updated_at=None))


def test_orphans_are_old_consumers_that_are_not_listed(cloud):
    provider = host(cloud)
    alive, dead, volume = (
        claimed(cloud, provider, amount=1, kind=kind)
        for kind in ("INSTANCE", "INSTANCE", "VOLUME")
    )
    make_older(cloud, 100)
    item = {"consumer": dead, "consumer_generation": 1}
    assert orphans(cloud, {"INSTANCE": [alive.upper()]}) == [item]
    assert orphans(cloud, {"INSTANCE": [alive, dead]}) == []
    assert orphans(cloud, {"INSTANCE": [alive]}, older_than=1000) == []
    assert orphans(cloud, {"VOLUME": [], "unknown": []}) == [
        {"consumer": volume, "consumer_generation": 1}
    ]
    whole = cloud.post(PATH, {"living": {"INSTANCE": [alive, dead]}})["findings"]
    assert list(whole) == KINDS_OF_FINDINGS


def test_a_limit_cuts_the_items_and_not_the_count(cloud):
    for number in range(5):
        leave_an_empty_consumer(cloud, f"left {number}")
    answer = cloud.ask(PATH, kind="empty_consumer,unused_trait", limit=2)["findings"]
    assert list(answer) == ["empty_consumer", "unused_trait"]
    assert answer["empty_consumer"]["count"] == 5
    assert len(answer["empty_consumer"]["items"]) == 2


# -- mending -------------------------------------------------------------------------------


def everything_broken(cloud):
    """Findings of all kinds that can be repaired, except orphans."""
    provider = host(cloud)
    child = host(cloud, parent=provider)
    join(cloud, provider, AGGREGATES[0])
    join(cloud, provider)
    claimed(cloud, provider)
    cloud.by_hand(sa.delete(tables.consumers))
    leave_rows_of_nothing(cloud)
    leave_an_empty_consumer(cloud)
    set_row(cloud, child, root_provider_id=id_of(cloud, child))
    elsewhere = {
        FindingKind.ORPHANED,
        FindingKind.EXPIRED_HOLD,
        FindingKind.BROKEN_HOLD,
        FindingKind.BROKEN_DRAW,
    }
    return [kind.value for kind in REPAIRABLE if kind not in elsewhere]


def test_unambiguous_findings_are_repaired_once(cloud):
    for kind in everything_broken(cloud):
        before = findings(cloud, kind)
        assert before
        assert set(repair_all(cloud, kind, dry_run=True)) == {"done"}
        assert findings(cloud, kind) == before
        assert set(repair_all(cloud, kind)) == {"done"}
        assert findings(cloud, kind) == []
        repairs = [{"kind": kind, **item} for item in before]
        answer = cloud.post(REPAIRS, {"repairs": repairs})["repairs"]
        assert {repair["result"] for repair in answer} == {"gone"}
    providers = cloud.ask("/treeclaim/providers")["providers"]
    assert providers[1]["root_provider_uuid"] == providers[0]["uuid"]
    (consumer,) = (
        consumer
        for consumer in cloud.ask("/treeclaim/allocations")["consumers"]
        if consumer["uuid"] != uuid_of("lost")
    )
    assert consumer["consumer_generation"] == 0


class SlowClock:
    """The clock of deadlines, on which each look takes half a second."""

    def __init__(self):
        self.looks = 0

    def __call__(self):
        self.looks += 1
        return time.monotonic() + self.looks / 2


def test_timed_out_repairs_report_completed_ones(cloud, monkeypatch):
    consumers = [leave_an_empty_consumer(cloud, f"left {number}") for number in range(40)]
    repairs = [{"kind": "empty_consumer", "consumer": consumer} for consumer in consumers]
    monkeypatch.setattr(timing, "monotonic", SlowClock())
    answer = cloud.client.post(REPAIRS, json={"repairs": repairs}, headers=EXTENDED)
    monkeypatch.undo()
    results = [repair["result"] for repair in answer.json()["repairs"]]
    count = results.count("done")
    assert 0 < count < len(consumers)
    assert results == ["done"] * count + ["refused"] * (len(consumers) - count)
    details = [repair["detail"] for repair in answer.json()["repairs"][count:]]
    assert all("the time of the request is over" in detail for detail in details[1:])
    remaining = {item["consumer"] for item in findings(cloud, "empty_consumer")}
    assert remaining == set(consumers[count:])


def test_root_below_a_cycle_is_not_repaired(cloud):
    root = host(cloud)
    child = host(cloud, parent=root)
    set_row(cloud, root, parent_provider_id=id_of(cloud, child))
    (answer,) = cloud.post(REPAIRS, {"repairs": [{"kind": "broken_root", "provider": child}]})[
        "repairs"
    ]
    assert answer["result"] == "refused"
    assert "broken_parent" in answer["detail"]


def test_changed_orphan_is_not_released(cloud):
    provider = host(cloud)
    consumer = claimed(cloud, provider, amount=1)
    (item,) = orphans(cloud, {"INSTANCE": []}, older_than=0) or [
        {"consumer": consumer, "consumer_generation": 1}
    ]
    assert claim(cloud, consumer, provider, amount=2, generation=1).is_success
    repair = {"kind": "orphaned", **item}
    (refused,) = cloud.post(REPAIRS, {"repairs": [repair]})["repairs"]
    assert refused["result"] == "refused"
    assert "generation" in refused["detail"]
    assert cloud.single(provider)["usages"] == {"VCPU": 2}
    repair["consumer_generation"] = 2
    (done,) = cloud.post(REPAIRS, {"repairs": [repair]})["repairs"]
    assert done["result"] == "done"
    assert cloud.single(provider)["usages"] == {"VCPU": 0}


@pytest.mark.slow
def test_dangling_rows_are_removed_without_touching_new_providers(cloud):
    """Providers come with inventories, some with the very ids of the rows that are deleted."""
    first = id_of(cloud, host(cloud))
    ids = range(first + 1, first + 2_000)
    lost = []

    def come(_step):
        path = f"/resource_providers/{host(cloud)}/inventories"
        inventories = cloud.client.get(path).json()["inventories"]
        if list(inventories) != ["VCPU"]:
            lost.append(inventories)

    repairs = [
        {"kind": "without_provider", "table": "inventories", "provider_id": provider_id}
        for provider_id in ids
    ]
    results = set()
    with busy(come):
        for start in range(0, 240, 12):
            answer = cloud.post(REPAIRS, {"repairs": repairs[start : start + 40]})["repairs"]
            results |= {repair["result"] for repair in answer}
    assert not lost
    assert results == {"gone"}
    cloud.by_hand(inventory_of_nobody(99_999, 1))
    assert repair_all(cloud, "without_provider") == ["done"]
    assert findings(cloud, "without_provider") == []
