# SPDX-License-Identifier: Apache-2.0
"""Survival of failures over HTTP (contract page 101, section 4)."""

import random
import threading
from fractions import Fraction
from typing import Any

import pytest

from tests.api.resources.planning.clouds import (
    HEADERS,
    applied,
    host,
    uuid_of,
)
from tests.bodies import wanted_by
from tests.service import client_of, services_on, start_on
from treeclaim.replica import child, child_process


def asked(client, domains="tree", status=200, **more):
    answer = client.post("/treeclaim/survival", json={"domains": domains} | more)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_survival_past_its_deadline_returns_partial_results(tmp_path, database):
    slow = "resources=VCPU:1" + "".join(f"&resources_{n}=VCPU:1" for n in range(40))
    with (
        start_on(database, tmp_path, **{"treeclaim.plan_deadline": "0.1"}) as application,
        client_of(application, **HEADERS) as client,
    ):
        # What is given is worked out first, whatever time that takes; then there is none left.
        place = {"requests": [{"query": slow, "amount": 4_000}]}
        answer = asked(client, given={"place": place, "providers": [host("big", VCPU=164_000)]})
        assert answer["complete"] is False
        assert answer["of"] == 5
        assert answer["unknown"] == 5 - answer["survive"] - answer["fail"] > 0
        assert answer["given"] == {"placed": [4_000]}


def test_plans_run_one_at_a_time(tmp_path, database, monkeypatch):
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
        request = wanted_by(
            [uuid_of(name)],
            *queries,
            consumer_type=dice.choice(["INSTANCE", "INSTANCE", "MIGRATION"]),
        )
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
        """The consumers without a place once some trees are gone, by a dry run of `placements`."""
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
        requests = [wanted_by([uuid_of(name)], *self.requests[name]) for name in placed]
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
def test_survival_matches_placements_on_a_copy(tmp_path, seed):
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
            answer = asked(client, domains, **more)
            assert answer["of"] == len(trees)
            assert answer["complete"]
            for domain in answer["domains"]:
                count, without, unplaced = cloud.expected(
                    trees[domain["uuid"]], types or ["INSTANCE", "MIGRATION"], rule
                )
                told = (domain["consumers"], domain["without_request"], domain["unplaced"])
                assert told == (count, without, len(unplaced)), (domain, unplaced)
                assert domain["first_unplaced"] == (unplaced[0] if unplaced else None)
                assert domain["survives"] is (False if unplaced else None if without else True)
