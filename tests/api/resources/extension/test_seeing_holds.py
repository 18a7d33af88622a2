# SPDX-License-Identifier: Apache-2.0
"""What holds have, as questions and lists see it (contract page 100)."""

import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from tests.api.resources.extension.clouds import cloud_on, uuid_of
from tests.databases import EACH_DATABASE
from tests.service import application_on, client_of
from treeclaim.store.schema.tables import draws, hold_projects, holds

EXTENDED = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
FORMER = {"openstack-api-version": "placement 1.39"}
HOST, OTHER, POOL = (uuid_of(name) for name in ("host", "other", "pool"))
H1, H2, H3, ENDED = (uuid_of(name) for name in ("h1", "h2", "h3", "ended"))
DRAWER = uuid_of("drawer")
MANY = ",".join(uuid_of(str(number)) for number in range(65))
SOON = datetime(2099, 12, 1, 8)  # noqa: DTZ001 - naive UTC, as it is stored


def make(cloud):
    """Two hosts of 10 VCPU: on the first three holds have 6, and a consumer has 3."""
    for name in ("host", "other"):
        assert cloud.client.post(
            "/resource_providers", json={"name": name, "uuid": uuid_of(name)}
        ).is_success
        body = {
            "inventories": {"VCPU": {"total": 10}, "MEMORY_MB": {"total": 100}},
            "resource_provider_generation": 0,
        }
        path = f"/resource_providers/{uuid_of(name)}/inventories"
        assert cloud.client.put(path, json=body).is_success
    hold(cloud, H1, {HOST: 3}, until=SOON)
    hold(cloud, H2, {HOST: 2, OTHER: 9}, project="p2", returns=True, projects=["p1", "p3"])
    hold(cloud, H3, {HOST: 1}, project="p3", note='rack "7"')
    claim(cloud, DRAWER, {HOST: 3}, "INSTANCE")
    record(cloud, draws, DRAWER, H2, {"VCPU": 2})


def claim(cloud, consumer, amounts, consumer_type, project="p1"):
    body = {
        "allocations": {host: {"resources": {"VCPU": n}} for host, n in amounts.items()},
        "project_id": project,
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": consumer_type,
    }
    answer = cloud.client.put(f"/allocations/{consumer}", json=body)
    assert answer.status_code == 204, answer.text


def hold(cloud, uuid, amounts, project="p1", until=None, returns=False, projects=(), note=None):
    claim(cloud, uuid, amounts, "TREECLAIM_HOLD", project)
    note = None if note is None else json.dumps(note)
    cloud.by_hand(
        holds.insert().values(uuid=uuid, ends_at=until, returns=returns, note=note),
        *(
            hold_projects.insert().values(hold_uuid=uuid, number=number, project=one)
            for number, one in enumerate(projects)
        ),
    )


def record(cloud, table, consumer, uuid, amounts):
    """Write down a draw at the first host."""
    with cloud.engine.connect() as connection:
        text = "SELECT id FROM resource_providers WHERE name = 'host'"
        (provider_id,) = connection.execute(sa.text(text)).one()
        ids = {
            name: number
            for number, name in connection.execute(
                sa.text("SELECT id, name FROM resource_classes")
            )
        }
    for name, amount in amounts.items():
        cloud.by_hand(
            table.insert().values(
                consumer_uuid=consumer,
                provider_id=provider_id,
                class_id=ids[name],
                hold_uuid=uuid,
                amount=amount,
            )
        )


@pytest.fixture(scope="module", params=EACH_DATABASE)
def cloud(request, tmp_path_factory):
    with cloud_on(request.param, tmp_path_factory.mktemp("cloud")) as cloud:
        make(cloud)
        yield cloud


def ask(cloud, path, status=200, headers=EXTENDED, body=None):
    method = "GET" if body is None else "POST"
    answer = cloud.client.request(method, path, headers=headers, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def hosts_of(found):
    return {host for one in found["allocation_requests"] for host in one["allocations"]}


def query(amount, *uuids, more=""):
    from_holds = f"&from_holds={','.join(uuids)}" if uuids else ""
    return f"resources=VCPU:{amount}{more}{from_holds}"


# -- from_holds ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amount", "uuids", "expected"),
    [
        (1, (), {HOST, OTHER}),
        (2, (), set()),
        (4, (H1,), {HOST}),
        (5, (H1,), set()),
        (3, (H2,), {HOST, OTHER}),
        (10, (H2,), {OTHER}),
        (7, (H3, H2, H1), {HOST, OTHER}),
        (8, (H1, H2, H3), {OTHER}),
        (2, (uuid_of("nobody"),), set()),
        # A consumer that is no hold has nothing for others.
        (2, (DRAWER,), set()),
        (4, (uuid_of("nobody"), H1), {HOST}),
        (4, (H1.upper(),), {HOST}),
        (4, (H1.replace("-", ""),), {HOST}),
    ],
)
def test_what_the_named_holds_have_counts_as_free(cloud, amount, uuids, expected):
    found = ask(cloud, f"/allocation_candidates?{query(amount, *uuids)}")
    assert hosts_of(found) == expected


def test_summaries_show_it_as_used(cloud):
    found = ask(cloud, f"/allocation_candidates?{query(4, H1)}")
    amounts = found["provider_summaries"][HOST]["resources"]["VCPU"]
    assert amounts == {"capacity": 10, "used": 9}


def test_order_terms_count_it_as_not_used(cloud):
    path = "/allocation_candidates?" + query(1, H1, H2, H3, more="&order_by=pack")
    found = ask(cloud, path)
    # On the first host 3 are used and 1 is taken; on the other none and 1.
    assert found["scores"] == [0.4, 0.1]
    assert ask(cloud, "/allocation_candidates?" + query(1, more="&order_by=pack"))["scores"] == [
        1.0,
        1.0,
    ]


def test_whether_one_draws_makes_no_difference_to_the_next_who_asks(cloud):
    for _ in range(3):
        assert hosts_of(ask(cloud, f"/allocation_candidates?{query(4)}")) == set()
        assert hosts_of(ask(cloud, f"/allocation_candidates?{query(4, H1)}")) == {HOST}


def test_alternatives_each_have_their_own_holds(cloud):
    body = {"alternatives": [query(4), query(5, H1), query(4, H1), query(1)]}
    found = ask(cloud, "/treeclaim/candidates", body=body)
    assert (found["alternative"], hosts_of(found)) == (2, {HOST})


def test_capacity_counts_it_too(cloud):
    requests = {"none": query(1), "h1": query(1, H1), "all": query(1, H1, H2, H3)}
    body = {"requests": requests, "domains": "tree"}
    for _ in range(2):
        found = ask(cloud, "/treeclaim/capacity", body=body)["capacity"]
        assert {name: one["fits"] for name, one in found.items()} == {
            "none": 2,
            "h1": 5,
            "all": 17,
        }
        assert {one["when_empty"] for one in found.values()} == {20}
        assert {part["name"]: part["fits"] for part in found["all"]["domains"]} == {
            "other": 10,
            "host": 7,
        }


@pytest.mark.parametrize(
    "value",
    ["", "x", f"{H1},", f"in:{H1}", f"!{H1}", f"{H1},{H1.upper()}", MANY],
    ids=range(7),
)
def test_anything_else_is_refused_where_it_stands(cloud, value):
    wrong = f"resources=VCPU:1&from_holds={value}"
    (error,) = ask(cloud, f"/allocation_candidates?{wrong}", 400)["errors"]
    assert (error["code"], "from_holds" in error["detail"]) == ("placement.query.bad_value", True)
    body = {"alternatives": [query(1), wrong]}
    (error,) = ask(cloud, "/treeclaim/candidates", 400, body=body)["errors"]
    assert error["detail"].count("alternatives[1]: ") == 1
    assert ask(cloud, f"/allocation_candidates/explain?{wrong}", 400)


def test_sixty_four_are_allowed_but_not_twice_the_parameter(cloud):
    many = [uuid_of(str(number)) for number in range(63)]
    assert hosts_of(ask(cloud, f"/allocation_candidates?{query(4, *many, H1)}")) == {HOST}
    path = f"/allocation_candidates?{query(4, H1)}&from_holds={H2}"
    (error,) = ask(cloud, path, 400)["errors"]
    assert error["code"] == "placement.query.duplicate_key"


def test_in_placements_the_parameter_is_refused(cloud):
    request = {
        "alternatives": [query(4, H1)],
        "consumers": [uuid_of("new")],
        "project_id": "p1",
        "user_id": "u",
        "consumer_type": "INSTANCE",
    }
    found = ask(cloud, "/treeclaim/placements", 400, body={"requests": [request]})
    assert found["errors"][0]["detail"].count("requests[0].alternatives[0]: ") == 1


def placing(count, amount, *uuids, **more):
    """A call that would place so many consumers, who draw from some holds."""
    request = {
        "alternatives": [query(amount)],
        "consumers": [uuid_of(f"new {number}") for number in range(count)],
        "project_id": "p1",
        "user_id": "u",
        "consumer_type": "INSTANCE",
    }
    if uuids:
        request["from_holds"] = list(uuids)
    return {"requests": [request], "dry_run": True, **more}


def test_placements_draw_and_leave_less_for_those_behind(cloud):
    found = ask(cloud, "/treeclaim/placements", body=placing(1, 4, H1))
    assert list(found["placements"][0]["allocations"]) == [HOST]
    # Of the host 1 is free and 3 are held; of the other 1.
    found = ask(cloud, "/treeclaim/placements", body=placing(9, 1, H1, partial=True))
    assert (len(found["placements"]), len(found["unplaced"])) == (5, 4)
    found = ask(cloud, "/treeclaim/placements", body=placing(9, 1, partial=True))
    assert len(found["placements"]) == 2


def test_a_placement_that_fails_tells_what_other_holds_have(cloud):
    body = placing(2, 4, H1, explain=True)
    (error,) = ask(cloud, "/treeclaim/placements", 409, body=body)["errors"]
    # What the first consumer drew is used, and of the other holds 3 and 9 are left.
    assert held_in(error["explanation"]) == {
        ("host", "capacity"): [3],
        ("other", "capacity"): [9],
    }
    assert "Without what is held 1 tree would match." in error["explanation"]["advice"]


@pytest.mark.parametrize("headers", [FORMER, {}], ids=["1.1", "none"])
def test_it_is_unknown_below_its_version(cloud, headers):
    headers = {"openstack-api-version": "placement 1.39"} | headers
    ask(cloud, f"/allocation_candidates?{query(4, H1)}", 400, headers)


# -- explain ---------------------------------------------------------------------------------------


def held_in(found):
    return {
        (tree["root_provider"]["name"], blocking["reason"]): [
            one.get("held") for one in blocking["providers"]
        ]
        for tree in found["nearest"]
        for blocking in tree["blocked_by"]
    }


def test_an_explanation_tells_what_holds_have_where_room_is_missing(cloud):
    found = ask(cloud, f"/allocation_candidates/explain?{query(7)}")
    assert held_in(found) == {("host", "capacity"): [6], ("other", "capacity"): [9]}
    assert "Without what is held 2 trees would match." in found["advice"]


def test_what_is_named_is_free_and_not_told(cloud):
    found = ask(cloud, f"/allocation_candidates/explain?{query(10, H1, H3)}")
    assert held_in(found) == {("host", "capacity"): [2], ("other", "capacity"): [9]}
    assert found["nearest"][0]["blocked_by"][0]["providers"][0]["free"] in {5, 1}
    assert "Without what is held 1 tree would match." in found["advice"]
    assert ask(cloud, f"/allocation_candidates/explain?{query(7, H1, H2, H3)}")["feasible"]


def test_nothing_is_advised_where_that_does_not_help(cloud):
    found = ask(cloud, f"/allocation_candidates/explain?{query(11)}")
    assert held_in(found)["host", "capacity"] == [6]
    assert not [one for one in found["advice"] if "held" in one]


def test_other_reasons_have_no_such_member(cloud):
    found = ask(cloud, "/allocation_candidates/explain?resources=DISK_GB:1,VCPU:1")
    assert {one for some in held_in(found).values() for one in some} <= {None}


# -- totals ----------------------------------------------------------------------------------------


def test_totals_have_what_is_held(cloud):
    found = ask(cloud, "/treeclaim/totals?by=tree")
    assert {name: one["held"] for name, one in found["totals"].items()} == {
        "VCPU": 15,
        "MEMORY_MB": 0,
    }
    assert {part["name"]: part["totals"]["VCPU"]["held"] for part in found["parts"]} == {
        "host": 6,
        "other": 9,
    }
    some = ask(cloud, f"/treeclaim/totals?in_tree={HOST}&resource_class=VCPU")["totals"]
    assert (some["VCPU"]["held"], some["VCPU"]["used"]) == (6, 9)


# -- the list --------------------------------------------------------------------------------------


def listed(cloud, parameters="", **options):
    return [
        one["uuid"] for one in ask(cloud, f"/treeclaim/holds?{parameters}", **options)["holds"]
    ]


def test_a_hold_is_listed_with_all_that_it_has(cloud):
    found = {one["uuid"]: one for one in ask(cloud, "/treeclaim/holds")["holds"]}
    assert list(found) == sorted([H1, H2, H3])
    assert found[H2] == {
        "uuid": H2,
        "project_id": "p2",
        "user_id": "u",
        "consumer_generation": 1,
        "allocations": {
            HOST: {"generation": 5, "resources": {"VCPU": 2}},
            OTHER: {"generation": 2, "resources": {"VCPU": 9}},
        },
        "hold": {
            "until": None,
            "returns": True,
            "projects": ["p1", "p3"],
            "note": None,
            "drawn": {HOST: {"VCPU": 2}},
        },
    }
    assert found[H1]["hold"]["until"] == f"{SOON.isoformat()}Z"
    assert found[H3]["hold"]["note"] == 'rack "7"'


def later(**amount):
    return (SOON + timedelta(**amount)).isoformat()


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("project_id=p1", {H1}),
        ("project_id=P1", set()),
        ("drawable_by=p1", {H1, H2}),
        ("drawable_by=p3", {H2, H3}),
        ("drawable_by=nobody", set()),
        (f"provider={HOST}", {H1, H2, H3}),
        (f"provider={OTHER}", {H2}),
        (f"in_tree=in:{OTHER},{POOL}", {H2}),
        (f"provider={OTHER}&project_id=p1", set()),
        (f"until_before={later(seconds=1)}Z", {H1}),
        (f"until_before={later()}Z", set()),
        (f"until_before={later(hours=1, seconds=1)}%2B01:00", {H1}),
        (f"until_before={later()}.5z", {H1}),
    ],
)
def test_filters_combine(cloud, parameters, expected):
    found = listed(cloud, parameters)
    assert (set(found), len(found)) == (expected, len(expected))


@pytest.mark.parametrize(
    "parameters",
    [
        "until_before=tomorrow",
        "until_before=2026-12-01",
        "until_before=2026-12-01T08:00:00",
        "until_before=2026-13-01T08:00:00Z",
        "provider=x",
        "limit=0",
        "marker=x",
        "unknown=1",
    ],
)
def test_what_cannot_be_read_is_refused(cloud, parameters):
    ask(cloud, f"/treeclaim/holds?{parameters}", 400)


def test_pages_together_are_the_list(cloud):
    path, pages = "/treeclaim/holds?limit=1", []
    while path:
        found = ask(cloud, path)
        pages += [one["uuid"] for one in found["holds"]]
        path = found["links"][0]["href"] if found["links"] else None
    assert pages == sorted([H1, H2, H3])
    assert ask(cloud, "/treeclaim/holds")["cursor"]


# -- what changes ----------------------------------------------------------------------------------


@contextmanager
def another_cloud(folder, **overrides):
    with application_on("sqlite", folder, **overrides) as application:
        client = client_of(application)
        engine = sa.create_engine(f"sqlite:///{folder}/placement.db")
        made = SimpleNamespace(client=client, engine=engine)

        def by_hand(*statements):
            with engine.begin() as connection:
                for statement in statements:
                    connection.execute(statement)

        made.by_hand = by_hand
        make(made)
        yield made
        engine.dispose()


def test_a_hold_that_has_ended_or_is_none_any_more_has_nothing(tmp_path):
    with another_cloud(tmp_path) as cloud:
        assert hosts_of(ask(cloud, f"/allocation_candidates?{query(4, H1)}")) == {HOST}
        assert cloud.client.delete(f"/allocations/{H1}").status_code == 204
        assert hosts_of(ask(cloud, f"/allocation_candidates?{query(4, H1)}")) == {HOST}
        assert hosts_of(ask(cloud, f"/allocation_candidates?{query(5, H1)}")) == set()
        assert listed(cloud) == sorted([H2, H3])
        past = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=1)
        cloud.by_hand(holds.update().where(holds.c.uuid == H2).values(ends_at=past))
        assert hosts_of(ask(cloud, f"/allocation_candidates?{query(9, H2)}")) == set()
