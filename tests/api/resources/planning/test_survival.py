# SPDX-License-Identifier: Apache-2.0
"""Which failures are survived, over HTTP (contract page 101, section 4)."""

import random
import threading
from fractions import Fraction
from typing import Any

import pytest

from tests.api.resources.planning.clouds import (
    HEADERS,
    applied,
    claimed,
    host,
    instance,
    uuid_of,
)
from tests.service import client_of, services_on, start_on
from treeclaim.replica import child, child_process


def asked(client, domains="tree", status=200, **more):
    answer = client.post("/treeclaim/survival", json={"domains": domains} | more)
    assert answer.status_code == status, answer.text
    return answer.json()


def by_name(found):
    return {one["name"]: one for one in found["domains"]}


def test_each_host_is_looked_at_as_if_it_were_gone(service):
    found = asked(service, all=True)
    assert {key: found[key] for key in ("survive", "fail", "unknown", "of", "complete")} == {
        "survive": 2,
        "fail": 2,
        "unknown": 0,
        "of": 4,
        "complete": True,
    }
    told = by_name(found)
    # 4 of a go to d, 2 to b; the 6 of b fit nowhere; the 5 of c neither; d has nobody.
    assert told["a"] == {
        "uuid": uuid_of("a"),
        "name": "a",
        "survives": True,
        "consumers": 2,
        "without_request": 0,
        "unplaced": 0,
        "first_unplaced": None,
        "proven": True,
    }
    assert told["b"]["first_unplaced"] == uuid_of("i3")
    assert told["b"]["proven"]
    assert told["c"]["first_unplaced"] == uuid_of("i4")
    assert told["d"]["survives"]
    assert told["d"]["consumers"] == 0
    assert "given" not in found


@pytest.mark.slow
def test_those_that_survive_are_left_out_and_no_more_than_the_limit_are_listed(service):
    assert set(by_name(asked(service))) == {"b", "c"}
    (first,) = asked(service, limit=1)["domains"]
    assert first["uuid"] == min(uuid_of("b"), uuid_of("c"))


def test_racks_fail_with_all_their_hosts(service):
    found = asked(service, [uuid_of("r1"), uuid_of("r2"), uuid_of("r3")], all=True)
    assert (found["survive"], found["of"]) == (1, 3)
    told = {one["uuid"]: one for one in found["domains"]}
    assert [one["unplaced"] for one in found["domains"]] == [1, 1, 0]
    # Largest first: 6 fit nowhere, 4 go to d, and 2 beside the 5 of c.
    assert told[uuid_of("r1")]["first_unplaced"] == uuid_of("i3")
    assert told[uuid_of("r1")]["consumers"] == 3
    assert told[uuid_of("r3")]["survives"]
    assert {one["name"] for one in found["domains"]} == {None}


def test_those_who_need_most_come_first(service):
    # Of two that are equal the smaller uuid is first.
    instance(service, "x1", "d", 2)
    instance(service, "x2", "d", 2)
    given = {"without": [uuid_of("b")], "release": [uuid_of("i1"), uuid_of("i2")]}
    entries = [{"name": "a", "inventories": {"VCPU": {"total": 3}}}]
    more = {"providers": entries, "release": [*given["release"], uuid_of("i4")]}
    entries.append({"name": "c", "inventories": {"VCPU": {"total": 1}}})
    told = by_name(asked(service, given=given | more))
    assert told["d"]["first_unplaced"] == max(uuid_of("x1"), uuid_of("x2"))


def test_outcome_is_unknown_where_a_consumer_has_no_valid_request(service):
    claimed(service, "i5", {"d": 4})
    claimed(service, "i6", {"c": 1}, request=["resources=VCPU:2"])
    found = asked(service, all=True)
    assert [found[key] for key in ("survive", "fail", "unknown", "of")] == [0, 3, 1, 4]
    told = by_name(found)
    unknown = {"survives": None, "proven": False, "first_unplaced": None}
    assert told["d"] == told["d"] | unknown | {"consumers": 1, "without_request": 1}
    assert told["c"] == told["c"] | {"consumers": 2, "without_request": 1, "unplaced": 1}
    # Failures come first, of these the one with a consumer without a request; then what is unknown.
    assert [one["name"] for one in found["domains"]][::3] == ["c", "d"]
    assert set(by_name(asked(service))) == {"a", "b", "c", "d"}
    # Requests of the call go before kept ones.
    requests = {uuid_of("i5"): ["resources=VCPU:4"], uuid_of("gone"): ["resources=VCPU:1"]}
    told = by_name(asked(service, all=True, requests=requests))
    assert told["d"] == told["d"] | {"survives": False, "without_request": 0, "unplaced": 1}


def test_other_types_are_gone_too(service):
    instance(service, "m", "d", 4, kind="MIGRATION")
    assert not by_name(asked(service, all=True))["d"]["survives"]
    told = by_name(asked(service, all=True, consumer_types=["INSTANCE"]))
    assert told["d"] == told["d"] | {"survives": True, "consumers": 0}
    told = by_name(asked(service, all=True, consumer_types=["unknown"]))
    assert told["b"]["consumers"] == 0


def test_holds_are_in_the_way_but_those_that_are_for_it(service):
    hold = {"kind": "TREECLAIM_HOLD", "hold": {"returns": True}}
    claimed(service, "h", {"d": 4}, **hold)
    told = by_name(asked(service, all=True))
    # 4 of a had room at d.
    assert not told["a"]["survives"]
    assert told["d"] == told["d"] | {"survives": True, "consumers": 0}
    assert by_name(asked(service, all=True, from_holds=[uuid_of("h")]))["a"]["survives"]


def test_what_was_drawn_goes_back_to_a_hold_where_that_is_left(service):
    claimed(service, "h", {"d": 4}, kind="TREECLAIM_HOLD", hold={"returns": True})
    # It has something on a too, and what it drew at d is the hold's once it is released.
    claimed(
        service,
        "i5",
        {"d": 4, "a": 2},
        from_holds=[uuid_of("h")],
        request=["resources=VCPU:6"],
    )
    told = by_name(asked(service, all=True))
    assert told["a"]["unplaced"] == 2
    told = by_name(asked(service, all=True, from_holds=[uuid_of("h")]))
    assert told["a"]["unplaced"] == 1


@pytest.mark.slow
def test_given_is_applied_first(service):
    given: dict[str, Any] = {"providers": [host("e", VCPU=8)]}
    found = asked(service, given=given)
    assert (found["survive"], found["of"], found["given"]) == (5, 5, {"placed": []})
    given["place"] = {"requests": [{"query": "resources=VCPU:8", "amount": 2}]}
    found = asked(service, given=given)
    assert found["given"] == {"placed": [1]}
    told = by_name(found)
    assert told["e"] == told["e"] | {"consumers": 1, "unplaced": 1}
    assert not by_name(asked(service, given=given, consumer_types=["INSTANCE"]))["b"]["survives"]


@pytest.mark.slow
def test_rules_hold_for_those_that_are_placed_anew(service):
    both = [uuid_of("i1"), uuid_of("i2")]
    apart: dict[str, Any] = {
        "domains": "tree",
        "consumers": [*both, uuid_of("i3")],
        "max_per_domain": 1,
    }
    # 4 may go to d alone, where 2 may not follow, nor to b: but to c.
    assert by_name(asked(service, all=True, rules=[apart]))["a"]["survives"]
    apart["consumers"].append(uuid_of("i4"))
    told = by_name(asked(service, all=True, rules=[apart], explain=True))
    assert told["a"]["first_unplaced"] == uuid_of("i2")


def test_it_is_explained_why_the_first_finds_no_place(service):
    found = asked(service, explain=True)
    first, second = found["domains"]
    assert "explanation" not in second
    told = first["explanation"]
    assert told["feasible"] is False
    assert told["trees"]["considered"] == 3
    assert {one["root_provider"]["name"] for one in told["nearest"]}.isdisjoint({first["name"]})
    only = {"domains": "tree", "consumers": [uuid_of("i1"), uuid_of("i4")], "max_per_domain": 1}
    by_rule = asked(
        service,
        [uuid_of("r1")],
        explain=True,
        rules=[only],
        given={
            "without": [uuid_of("d")],
            "release": [uuid_of("i3"), uuid_of("i2")],
            "providers": [{"name": "c", "inventories": {"VCPU": {"total": 9}}}],
        },
    )
    (told,) = by_rule["domains"]
    assert told["first_unplaced"] == uuid_of("i1")
    assert {"reason": "rule", "detail": {"rule": 0}}.items() <= told["explanation"]["funnel"][
        -1
    ].items()


def test_at_the_deadline_what_was_found_is_told(tmp_path, database):
    slow = "resources=VCPU:1" + "".join(f"&resources_{n}=VCPU:1" for n in range(40))
    with (
        start_on(database, tmp_path, **{"treeclaim.plan_deadline": "0.1"}) as application,
        client_of(application, **HEADERS) as client,
    ):
        # What is given is worked out first, whatever time that takes; then there is none left.
        place = {"requests": [{"query": slow, "amount": 4_000}]}
        found = asked(client, given={"place": place, "providers": [host("big", VCPU=164_000)]})
        assert found["complete"] is False
        assert found["of"] == 5
        assert found["unknown"] == 5 - found["survive"] - found["fail"] > 0
        assert found["given"] == {"placed": [4_000]}


def test_one_plan_at_a_time_is_made(tmp_path, database, monkeypatch):
    with start_on(database, tmp_path) as application, client_of(application, **HEADERS) as client:
        inside, go_on = threading.Event(), threading.Event()

        def waiting(*arguments):
            inside.set()
            assert go_on.wait(30)
            return child.fork(*arguments)

        monkeypatch.setattr(child_process, "fork", waiting)
        answers = []
        first = threading.Thread(
            target=lambda: answers.append(
                client.post("/treeclaim/survival", json={"domains": "tree"})
            )
        )
        first.start()
        assert inside.wait(30)
        second = client.post("/treeclaim/survival", json={"domains": "tree"})
        assert second.status_code == 503
        assert int(second.headers["retry-after"]) > 0
        go_on.set()
        first.join()
        assert answers[0].status_code == 200
        assert asked(client)["of"] == 4


@pytest.mark.parametrize(
    "more",
    [
        {"domains": []},
        {"domains": "rack"},
        {"unknown": 1},
        {"limit": 0},
        {"limit": 10_001},
        {"consumer_types": ["small"]},
        {"requests": {"x": ["resources=VCPU:1"]}},
        {"requests": {uuid_of("i1"): []}},
        {"requests": {uuid_of("i1"): ["resources=NO_SUCH:1"]}},
        {"requests": {uuid_of("i1"): [f"resources=VCPU:1&from_holds={uuid_of('h')}"]}},
        {
            "requests": {
                uuid_of("i1"): ["resources=VCPU:1"],
                uuid_of("i1").upper(): ["resources=VCPU:1"],
            }
        },
        {"rules": [{"domains": "tree", "consumers": []}]},
        {"rules": [{"domains": "tree", "consumers": [], "max_skew": 1}]},
        {"rules": [{"domains": "tree", "consumers": [], "max_per_domain": 1, "soft": True}]},
        {"from_holds": [uuid_of("h"), uuid_of("h")]},
        {"given": {"providers": [{"name": "nobody"}]}},
    ],
)
def test_what_is_wrong_is_400(service, more):
    asked(service, status=400, **({"domains": "tree"} | more))


def test_an_error_in_a_query_tells_where_it_stands(service):
    requests = {uuid_of("i1"): ["resources=VCPU:1", "resources=NO_SUCH:1"]}
    told = asked(service, status=400, requests=requests)["errors"][0]["detail"]
    assert f"requests.{uuid_of('i1')}[1]: " in told


# -- beside placements on a copy -------------------------------------------------------------------

ORDERS = ("", "&order_by=pack", "&order_by=spread:VCPU", "&order_by=shuffle:x")


class Cloud:
    """A random cloud, and who is in it."""

    def __init__(self, client, dice):
        self.client, self.dice = client, dice
        self.held, self.requests, self.kinds = {}, {}, {}
        self.trees = {f"t{n}": f"t{n}" for n in range(dice.randint(2, 5))}
        self.racks = {name: dice.choice(["r1", "r2", None]) for name in self.trees}
        self.amounts = {name: dice.randint(3, 8) for name in self.trees}
        self.has_pool = dice.random() < 0.4
        entries = []
        for name, rack in self.racks.items():
            cells = dice.choice([0, 0, 2])
            own = {} if cells else {"VCPU": self.amounts[name]}
            entries.append(host(name, rack, MEMORY_MB=dice.randint(4, 12), **own))
            for cell in range(cells):
                child = f"{name}-{cell}"
                entries.append(host(child, parent=name, VCPU=self.amounts[name] // 2 + 1))
        if self.has_pool:
            entries.append(host("pool", "r1", traits=["MISC_SHARES_VIA_AGGREGATE"], DISK_GB=12))
        applied(client, *entries)
        for number in range(dice.randint(2, 7)):
            self.place(f"c{number}")

    def place(self, name):
        dice = self.dice
        query = f"resources=VCPU:{dice.randint(1, 4)}"
        if dice.random() < 0.4:
            query += f",MEMORY_MB:{dice.randint(1, 4)}"
        elif self.has_pool and dice.random() < 0.6:
            query += f",DISK_GB:{dice.randint(1, 4)}"
        queries = [query + dice.choice(ORDERS)]
        request = {
            "alternatives": queries,
            "consumers": [uuid_of(name)],
            "project_id": "p",
            "user_id": "u",
            "consumer_type": dice.choice(["INSTANCE", "INSTANCE", "MIGRATION"]),
        }
        if dice.random() < 0.2:
            del request["consumer_type"]
            request["hold"] = {}
        answer = self.client.post("/treeclaim/placements", json={"requests": [request]})
        if answer.status_code == 201:
            (placed,) = answer.json()["placements"]
            self.held[name] = placed["allocations"]
            self.requests[name] = queries
            self.kinds[name] = request.get("consumer_type", "HOLD")
            if dice.random() < 0.2:
                del self.requests[name]
                body = {"requests": {uuid_of(name): None}}
                assert self.client.post("/treeclaim/requests", json=body).is_success

    def roots(self):
        body = self.client.get("/treeclaim/providers").json()["providers"]
        return {one["uuid"]: one["root_provider_uuid"] for one in body}

    def need(self, name):
        totals = self.client.get("/treeclaim/totals").json()["totals"]
        sums = {}
        for some in self.held[name].values():
            for kind, amount in some["resources"].items():
                sums[kind] = sums.get(kind, 0) + amount
        share = max(Fraction(amount, totals[kind]["capacity"]) for kind, amount in sums.items())
        return -share, uuid_of(name)

    def expected(self, gone, types, rule):
        """Who finds no place once some trees are gone: `placements`, dry, as things would be."""
        roots = self.roots()
        inside = [
            name
            for name, held in self.held.items()
            if {roots[uuid] for uuid in held} & gone and self.kinds[name] != "HOLD"
        ]
        placed = sorted(
            (n for n in inside if n in self.requests and self.kinds[n] in types), key=self.need
        )
        count = sum(self.kinds[name] in types for name in inside)
        if not placed:
            return count, count - len(placed), []
        requests = [
            {
                "alternatives": self.requests[name],
                "consumers": [uuid_of(name)],
                "project_id": "p",
                "user_id": "u",
                "consumer_type": "INSTANCE",
            }
            for name in placed
        ]
        body: dict[str, Any] = {
            "requests": requests,
            "partial": True,
            "dry_run": True,
            "given": {"release": [uuid_of(name) for name in inside], "without": sorted(gone)},
        }
        if rule:
            concerned = [n for n, name in enumerate(placed) if uuid_of(name) in rule["consumers"]]
            others = [
                uuid_of(name)
                for name in self.held
                if name not in inside and uuid_of(name) in rule["consumers"]
            ]
            if concerned:
                body["rules"] = [
                    {
                        "domains": rule["domains"],
                        "max_per_domain": rule["max_per_domain"],
                        "with": others,
                        "requests": concerned,
                    }
                ]
        answer = self.client.post("/treeclaim/placements", json=body)
        assert answer.status_code == 200, answer.text
        return count, count - len(placed), answer.json()["unplaced"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_it_is_what_placements_do_on_a_copy(tmp_path, seed):
    dice = random.Random(seed)
    with (
        services_on(tmp_path) as (_, application),
        client_of(application, **HEADERS) as client,
    ):
        cloud = Cloud(client, dice)
        types = dice.choice([None, ["INSTANCE"]])
        rule: dict[str, Any] | None = None
        if dice.random() < 0.5:
            members = [uuid_of(name) for name in cloud.held if dice.random() < 0.7]
            rule = {"domains": "tree", "consumers": members, "max_per_domain": dice.choice([1, 2])}
        more: dict[str, Any] = {"all": True}
        if types is not None:
            more["consumer_types"] = types
        if rule:
            more["rules"] = [rule]
        roots = cloud.roots()
        racks = {
            uuid_of(rack): {uuid_of(n) for n, mine in cloud.racks.items() if mine == rack}
            for rack in ("r1", "r2")
        }
        if cloud.has_pool:
            racks[uuid_of("r1")].add(uuid_of("pool"))
        for domains, trees in (
            ("tree", {root: {root} for root in set(roots.values())}),
            (sorted(racks), racks),
        ):
            found = asked(client, domains, **more)
            assert found["of"] == len(trees)
            assert found["complete"]
            for one in found["domains"]:
                count, without, unplaced = cloud.expected(
                    trees[one["uuid"]], types or ["INSTANCE", "MIGRATION"], rule
                )
                told = (one["consumers"], one["without_request"], one["unplaced"])
                assert told == (count, without, len(unplaced)), (one, unplaced)
                assert one["first_unplaced"] == (unplaced[0] if unplaced else None)
                assert one["survives"] is (False if unplaced else None if without else True)
