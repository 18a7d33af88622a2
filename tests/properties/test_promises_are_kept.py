# SPDX-License-Identifier: Apache-2.0
"""Counts, plans and assumptions come true (contract pages 98, 100, 101 and 102).

Random clouds have everything at once: devices that consume, attributes, conditions, some of which begin with
the first use, a pool, returning holds and consumers that drew from them. Each answer over HTTP is compared
with the same done for real on a copy of the database. A cloud has eleven such comparisons: three counts, two
of released consumers, five answers under an assumption, and a plan.
TREECLAIM_PROPERTY_EXAMPLES=N in the environment tries N clouds; without it, as in the tier `all`, 10,000 cases.
"""

import random
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.bodies import wanted_by
from tests.reference.world import uuid_of
from tests.service import client_of, fresh_database, start_on
from tests.tiers import count_worlds

CASES_OF_A_CLOUD = 11
CLOUDS = count_worlds(10_000 // CASES_OF_A_CLOUD + 1)
HEADERS = {"openstack-api-version": "placement 1.39, treeclaim latest"}
SLICE, PART = "CUSTOM_SLICE", "CUSTOM_PART"
OWNER = {"project_id": "p", "user_id": "u"}


class Cloud:
    """A random cloud in a database file."""

    def __init__(self, seed, folder):
        self.dice = random.Random(seed)
        self.folder = folder
        self.url = fresh_database(folder)
        self.names = []
        with self.served() as client:
            self.build(client)
            self.fill(client)

    @contextmanager
    def served(self):
        """A client of a new service on the database."""
        with start_on(self.url, self.folder) as app, client_of(app, **HEADERS) as client:
            yield client

    @contextmanager
    def copied(self):
        """A client of a service on a copy of the database."""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copyfile(self.url.removeprefix("sqlite:///"), Path(folder) / "copy.db")
            with (
                start_on(f"sqlite:///{folder}/copy.db", folder) as app,
                client_of(app, **HEADERS) as client,
            ):
                yield client

    def build(self, client):
        dice, entries = self.dice, []

        def add(name, parent, inventories, traits=(), racks=()):
            self.names.append(name)
            entries.append(
                {
                    "uuid": uuid_of(name),
                    "name": name,
                    "parent_provider_uuid": parent and uuid_of(parent),
                    "inventories": inventories,
                    "traits": list(traits),
                    "aggregates": [uuid_of(rack) for rack in racks],
                    "attributes": {"node": dice.randint(0, 1)} if dice.random() < 0.5 else {},
                }
            )

        for number in range(dice.randint(2, 3)):
            host = f"h{number}"
            racks = [rack for rack in ("r1", "r2") if dice.random() < 0.5]
            add(host, None, {"VCPU": {"total": dice.randint(2, 6)}}, racks=racks)
            for card in range(dice.randint(0, 2)):
                name = f"{host}c{card}"
                add(name, host, {SLICE: {"total": dice.randint(2, 5)}})
                for part in range(dice.randint(1, 2)):
                    uses = [(name, SLICE)] + [(host, "VCPU")] * (dice.random() < 0.3)
                    consumes = [
                        {
                            "provider": uuid_of(at),
                            "resource_class": kind,
                            "amount": dice.randint(1, 2),
                        }
                        for at, kind in uses
                    ]
                    stock = {"total": dice.randint(1, 4), "consumes": consumes}
                    add(f"{name}p{part}", name, {PART: stock})
        if dice.random() < 0.3:
            add("pool", None, {"DISK_GB": {"total": 6}}, ["MISC_SHARES_VIA_AGGREGATE"], ["r1"])
        for name in (SLICE, PART):
            assert client.put(f"/resource_classes/{name}").status_code == 201
        body = {"providers": entries, "create_names": True}
        answer = client.post("/treeclaim/providers", json=body)
        assert answer.status_code == 200, answer.text

    def fill(self, client):
        """Make holds, draw from them and place consumers, then set conditions."""
        dice = self.dice
        for number in range(dice.randint(0, 2)):
            request = OWNER | {
                "alternatives": [self.query()],
                "consumers": [uuid_of(f"hold{number}")],
                "hold": {"returns": dice.random() < 0.8},
            }
            client.post("/treeclaim/placements", json={"requests": [request]})
        holds = [hold["uuid"] for hold in client.get("/treeclaim/holds").json()["holds"]]
        for number in range(dice.randint(1, 6)):
            request = wanted_by([uuid_of(f"c{number}")], self.query())
            if holds and dice.random() < 0.5:
                request["from_holds"] = holds
            client.post("/treeclaim/placements", json={"requests": [request]})
        for name in self.names:
            if dice.random() < 0.2:
                body = {"effect": dice.choice(["no_new", "leave"]), "on_use": dice.random() < 0.6}
                path = f"/treeclaim/providers/{uuid_of(name)}/conditions/{dice.choice(['A', 'B'])}"
                assert client.put(path, json=body).status_code == 204

    def query(self, *, is_plain=True):
        dice = self.dice
        pairs = []
        if dice.random() < 0.5:
            pairs.append(("resources", f"VCPU:{dice.randint(1, 2)}"))
            if not is_plain and dice.random() < 0.2:
                pairs = [("resources", f"{SLICE}:{dice.randint(2, 4)}"), ("can_split", SLICE)]
        suffixes = [f"_{letter}" for letter in "XY"[: dice.randint(0 if pairs else 1, 2)]]
        for suffix in suffixes:
            kind = dice.choice([PART, PART, SLICE, "VCPU"])
            pairs.append((f"resources{suffix}", f"{kind}:{dice.randint(1, 2)}"))
            if dice.random() < 0.2:
                pairs.append((f"tolerates{suffix}", "A"))
            if dice.random() < 0.15:
                pairs.append((f"where{suffix}", "node == 1"))
        if "pool" in self.names and dice.random() < 0.3:
            pairs.append(("resources_D", "DISK_GB:1"))
        if suffixes and dice.random() < 0.4:
            pairs.append(("isolate", dice.choice(suffixes)))
        if not is_plain and dice.random() < 0.2:
            pairs.append(("order_by", dice.choice(["pack", "spread_providers"])))
        return urlencode(pairs, safe=":,")


def post(client, path, body):
    answer = client.post(path, json=body)
    assert answer.status_code in (200, 409), answer.text
    return answer.json()


def placement(query, names):
    return {"requests": [wanted_by(names, query)]}


def count_fits(client, query):
    body = {"requests": {"q": query}, "domains": "tree"}
    answer = client.post("/treeclaim/capacity", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["capacity"]["q"]


def check_count(cloud, query):
    """`fits` is what one call places, and what one call after the other places."""
    with cloud.copied() as client:
        counted = count_fits(client, query)
        names = [uuid_of(f"new{number}") for number in range(counted["fits"] + 1)]
        dry = placement(query, names) | {"partial": True, "dry_run": True}
        placed = post(client, "/treeclaim/placements", dry)["placements"]
        assert len(placed) == counted["fits"] <= counted["at_most"], (query, counted)
        placed_count = 0
        for name in names:
            answer = client.post("/treeclaim/placements", json=placement(query, [name]))
            assert answer.status_code in (201, 409), answer.text
            if answer.status_code == 409:
                break
            placed_count += 1
        # A consumer that tolerates a condition that has begun may follow in a call of its own.
        if "tolerates" in query:
            assert placed_count >= counted["fits"], (query, counted)
        else:
            assert placed_count == counted["fits"], (query, counted)


def check_release(cloud):
    """Survival and plans under an assumed release are those after a deletion."""
    released = [uuid_of(name) for name in ("c0", "c1", "hold0") if cloud.dice.random() < 0.5]
    assumptions = {"release": released}
    with cloud.copied() as client:
        survival = post(
            client, "/treeclaim/survival", {"domains": "tree", "all": True, "given": assumptions}
        )
        goal = {"goal": {"empty": [uuid_of("h0")]}}
        plan = post(client, "/treeclaim/moves", goal | {"given": assumptions})
        release(client, released)
        real = post(client, "/treeclaim/survival", {"domains": "tree", "all": True})
        assert real | {"given": survival["given"]} == survival, released
        after = post(client, "/treeclaim/moves", goal)
        for member in ("reached", "at_least", "optimal", "proven", "before"):
            assert after[member] == plan[member], (released, member, after, plan)


def release(client, consumers):
    for consumer in consumers:
        assert client.delete(f"/allocations/{consumer}").status_code in (204, 404)


def check_assumption(cloud, query):
    """Answers under an assumption are those after the same writes; other requests are unaffected."""
    with cloud.copied() as client:
        kind = cloud.dice.choice([assume_release, assume_removal, assume_entries, assume_placing])
        assumptions, write = kind(cloud, client)
        before = answers(client, query)
        assumed = answers(client, query, assumptions)
        assert answers(client, query) == before, assumptions
        write(client)
        assert answers(client, query) == assumed, assumptions


def assume_release(cloud, _client):
    released = [uuid_of(name) for name in ("c0", "c1", "hold0") if cloud.dice.random() < 0.5]
    return {"release": released}, lambda client: release(client, released)


def assume_removal(cloud, client):
    """Take a tree away, with all consumers that have something in it."""
    tree = [name for name in cloud.names if name.startswith("h1")]
    uuids = set(map(uuid_of, tree))
    consumers = [uuid_of(f"c{number}") for number in range(6)]
    consumers += [hold["uuid"] for hold in client.get("/treeclaim/holds").json()["holds"]]
    inside = []
    for consumer in consumers:
        document = client.get(f"/allocations/{consumer}").json()
        # The draws of a released consumer return to their hold.
        drawn_amounts = (document.get("hold") or {}).get("drawn", {})
        if not uuids.isdisjoint([*document["allocations"], *drawn_amounts]):
            inside.append(consumer)

    def write(client):
        release(client, inside)
        for name in reversed(tree):
            path = f"/resource_providers/{uuid_of(name)}"
            assert client.delete(path).status_code == 204

    return {"without": [uuid_of(tree[-1])], "release": inside}, write


def assume_entries(cloud, _client):
    """Create a host, and change, rename or move others."""
    dice = cloud.dice
    stock = {"VCPU": {"total": dice.randint(2, 9), "allocation_ratio": dice.choice([1.0, 2.0])}}
    attributes = {"node": dice.randint(0, 1)}
    possible = [
        {"uuid": uuid_of("new"), "name": "new", "inventories": stock, "attributes": attributes},
        {"uuid": uuid_of("h0"), "name": "h0", "inventories": stock, "attributes": attributes},
        {"uuid": uuid_of("h1"), "name": "other", "traits": ["MISC_SHARES_VIA_AGGREGATE"]},
        {"uuid": uuid_of("h1"), "parent_provider_uuid": uuid_of("h0")},
        {"uuid": uuid_of("h1"), "aggregates": [uuid_of("r2")]},
    ]
    first = dice.choice(possible)
    entries = [first] + [other for other in possible[:1] if other is not first]

    def write(client):
        answer = client.post("/treeclaim/providers", json={"providers": entries})
        assert answer.status_code == 200, answer.text

    return {"providers": entries}, write


def assume_placing(cloud, _client):
    query, amount = cloud.query(), cloud.dice.randint(1, 6)
    names = [uuid_of(f"new{number}") for number in range(amount)]

    def write(client):
        body = placement(query, names) | {"partial": True}
        assert client.post("/treeclaim/placements", json=body).status_code in (200, 201)

    return {"place": {"requests": [{"query": query, "amount": amount}]}}, write


def answers(client, query, assumptions=None):
    """Return the statuses and contents of responses, under an assumption if there is one."""
    assumption = {} if assumptions is None else {"given": assumptions}
    body = {"requests": {"q": query}, "domains": "tree"}
    responses = [
        client.post("/treeclaim/candidates", json={"alternatives": [query]} | assumption),
        client.post("/treeclaim/capacity", json=body | assumption),
    ]
    for by in ("tree", "trait", "aggregate"):
        path = f"/treeclaim/totals?by={by}"
        responses.append(client.post(path, json=assumption) if assumptions else client.get(path))
    return [(answer.status_code, without_counters(answer.json())) for answer in responses]


def without_counters(document):
    """The contents of an answer, without what depends on the question or on other writes."""
    if isinstance(document, dict):
        left_out = {"given", "cursor", "request_id"}
        return {
            name: without_counters(value)
            for name, value in document.items()
            if name not in left_out
        }
    return [*map(without_counters, document)] if isinstance(document, list) else document


def check_plan(cloud):
    """The moves of a plan are accepted in their order, and reach the promised state."""
    dice = cloud.dice
    goal = dice.choice(
        [
            {"empty": [uuid_of(f"h{dice.randint(0, 1)}")]},
            {"leave": True},
            {"fit": {"query": cloud.query(), "amount": dice.randint(1, 3)}},
        ]
    )
    call = {"goal": goal, "both_at_once": dice.random() < 0.5}
    with cloud.copied() as client:
        plan = post(client, "/treeclaim/moves", call)
        if "leave" in goal:
            assert plan["before"]["left"] == len(audited_to_leave(client))
        for move in plan["moves"]:
            now = client.get(f"/allocations/{move['consumer']}").json()
            keys = ["A"] if "tolerates" in str(now["request"]) else []
            body = {
                "allocations": move["to"],
                "consumer_type": now["consumer_type"],
                "consumer_generation": move["consumer_generation"],
                "tolerates": keys,
            }
            answer = client.put(f"/allocations/{move['consumer']}", json=body | OWNER)
            assert answer.status_code == 204, (call, plan, answer.text)
        after = post(client, "/treeclaim/moves", call)["before"]
        assert after == plan["after"], (call, plan, after)
        if "leave" in goal:
            assert after["left"] == len(audited_to_leave(client))


def audited_to_leave(client):
    """The consumers that the audit names."""
    answer = client.get("/treeclaim/audit?kind=must_leave&limit=1000").json()
    return {item["consumer"] for item in answer["findings"]["must_leave"]["items"]}


@pytest.mark.parametrize("seed", range(CLOUDS))
def test_promises_are_kept(seed, tmp_path):
    cloud = Cloud(seed, tmp_path)
    for _ in range(3):
        check_count(cloud, cloud.query(is_plain=False))
    check_release(cloud)
    check_assumption(cloud, cloud.query())
    check_plan(cloud)
