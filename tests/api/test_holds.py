# SPDX-License-Identifier: Apache-2.0
"""No operation keeps others from the Forest for long: 20 ms of processor time are aimed at, 60 allowed here.

Each operation whose work grows with the cloud is called at its documented limits, in a cloud of ten thousand hosts
whose shape has just changed, while others wait. The times are those that the service measures itself: of the thread
that has the turn, and of the next reader, which takes in what a write has left.

These are times, and take minutes: they run before a release.
"""

import itertools
import json
import re
import uuid
from dataclasses import replace
from urllib.parse import quote

import pytest
import sqlalchemy as sa

from tests.api.full_bodies import Names, full_bodies
from tests.api.raw import require_sound, send
from tests.api.stretches import LONGEST_STRETCH, measured_stretches
from tests.bodies import claim_of, wanted_by
from tests.clouds import World, WorldMaker, flat
from tests.clouds.bulk import write_world
from tests.clouds.promises import uuids_of_holds, write_promises, write_servers
from tests.machine import on_the_machine_of_the_bounds
from tests.service import services_on_database
from treeclaim.api.routes import OPERATIONS
from treeclaim.replica import turn as turn_module
from treeclaim.replica.kept import SlowQuestions
from treeclaim.replica.turn import LONGEST_HOLD
from treeclaim.store.schema.tables import attributes

pytestmark = pytest.mark.long

HOSTS = 10_000
TRIES = 4
VERSION = "1.39, treeclaim 1.0"
QUERY_LENGTH = 60_000
"""Characters of a query: the server takes 64 KiB for the whole address."""

STOCK = {"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 2_000}
TRAITS = [f"CUSTOM_TRAIT_{number}" for number in range(300)]
WANTED = "resources=VCPU:1,MEMORY_MB:512,DISK_GB:10"

MOST_SECONDS = 3 * LONGEST_HOLD
"""Three times the hold that is aimed at, since machines of tests are slow and uneven. An operation that forgets to
leave the Forest keeps it for seconds."""

LONG_TO_FOLLOW = "POST /treeclaim/providers"
"""A write at whose limits the next reader has more than 20 ms to take in: a thousand trees have another shape."""


def world():
    """Hosts in a zone, a rack and an aggregate of their own; each fiftieth has two children."""
    maker = WorldMaker(7)
    zones = [maker.uuid() for _ in range(3)]
    racks = [maker.uuid() for _ in range(500)]
    for number in range(HOSTS):
        traits = tuple(TRAITS[(number + step) % len(TRAITS)] for step in range(12))
        groups = (zones[number % 3], racks[number % 500], maker.uuid())
        root = maker.add(f"host-{number}", STOCK, traits=traits, aggregates=groups)
        for child in range(2 if number % 50 == 0 else 0):
            maker.add(f"host-{number}-{child}", {"VGPU": 8}, root, traits=traits[:1])
    return World("holds", maker.providers, "", (None,))


class Cloud:
    """A service with ten thousand hosts, and what is in it."""

    def __init__(self, services, application, providers):
        self.services = services
        self.application = application
        self.numbers = itertools.count()
        self.hosts = [provider.uuid for provider in providers if provider.parent is None]
        self.aggregates = list(
            dict.fromkeys(uuid for provider in providers for uuid in provider.aggregates)
        )

    def ask(self, method, path, query="", body=None):
        """Return the response to a request, which must be sound."""
        answer = self.send(method, path, query, body)
        require_sound(answer)
        return answer

    def send(self, method, path, query="", body=None):
        """Return the response to a request."""
        content = None if body is None else json.dumps(body).encode()
        return send(
            self.application, method, path, query=query.encode(), body=content, version=VERSION
        )

    def generation(self, provider):
        """Return the generation of a provider; its Forest follows all writes."""
        return self.ask("GET", f"/resource_providers/{provider}").json()["generation"]

    def change_shape(self):
        """Invalidate everything that depends on the shape."""
        host = self.hosts[-1]
        names = [TRAITS[next(self.numbers) % len(TRAITS)]]
        body = {"traits": names, "resource_provider_generation": self.generation(host)}
        assert self.ask("PUT", f"/resource_providers/{host}/traits", body=body).status == 200
        self.generation(host)
        self.services.replica._slow = SlowQuestions()
        self.services.batches._slow = SlowQuestions()

    def longest_hold(self, call, *arguments):
        """Return for how many seconds a call held the Forest, and what it returned."""
        self.services.replica.turn.longest = 0.0
        answer = call(*arguments)
        return self.services.replica.turn.longest, answer


def describe(url, count):
    """Give each provider ten attributes, no two the same."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for number in range(1, count + 1):
            values = [str(number), f'"{number} of some"', "true"]
            rows = [
                {"resource_provider_id": number, "name": f"n{at}", "value": values[at % 3]}
                for at in range(10)
            ]
            connection.execute(sa.insert(attributes), rows)
    engine.dispose()


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    folder = tmp_path_factory.mktemp("holds")
    url = f"sqlite:///{folder}/placement.db"
    made = world()
    write_world(url, made)
    describe(url, len(made.providers))
    # Requests that end by then do so on a busy machine too, and others are given up soon.
    limits = {"treeclaim.search_seconds": 1.0}
    with (
        services_on_database(url, folder, **limits) as (services, application),
        measured_stretches(
            application, services.store.engine, services.store._group_engine
        ) as measured,
    ):
        cloud = Cloud(services, measured, made.providers)
        cloud.generation(cloud.hosts[0])
        assert cloud.ask("PUT", "/treeclaim/mixes/day", body=mix(WANTED)).status == 204
        yield cloud


def excesses(cases, measure):
    """Return the times that exceed their bounds in each of several tries, by case and kind.

    Args:
        cases: Returns labels and cases, which differ with each try: a write that changes nothing takes no time.
        measure: Returns seconds and bound of each kind of time of a case.
    """
    passed = set()
    for _ in range(TRIES):
        exceeding = {}
        for label, case in cases():
            if label in passed:
                continue
            times = {
                kind: on_the_machine_of_the_bounds(seconds, most) - most
                for kind, (seconds, most) in measure(case).items()
            }
            if any(excess > 0 for excess in times.values()):
                exceeding[label] = times
            else:
                passed.add(label)
        if not exceeding:
            break
    return exceeding


def several(uuids):
    """As many uuids as a query may have."""
    return "in:" + ",".join(uuids[: (QUERY_LENGTH - 300) // 37])


def groups(count, suffix_parameters="", amount=1):
    """A query with so many groups."""
    group_parameters = "&".join(
        f"resources_{n}=VCPU:{amount + n % 3}{suffix_parameters.format(n=n)}" for n in range(count)
    )
    return f"{group_parameters}&group_policy=none"


def consumers(count):
    return [str(uuid.uuid4()) for _ in range(count)]


def placed(alternatives, count):
    """A request of a call that places consumers."""
    return wanted_by(consumers(count), *alternatives)


def every_trait(times):
    """`required` as often as asked, each value with all traits."""
    return "&".join("required=in:" + ",".join(TRAITS[n:] + TRAITS[:n]) for n in range(times))


def filters(cloud):
    """Filters of lists, each as long as a query may be."""
    yield "member_of=" + several(cloud.aggregates)
    yield "member_of=!" + several(cloud.aggregates)
    yield every_trait(8)
    yield "required=" + ",".join(f"!{name}" for name in TRAITS)


def lists(cloud):
    yield ""
    for query in filters(cloud):
        yield query + "&resources=VCPU:1,MEMORY_MB:1,DISK_GB:1"
    yield f"in_tree={cloud.hosts[0]}"


def bulk(cloud):
    everything = "include=inventories,usages,traits,aggregates,attributes"
    named = [f"{name}={several(cloud.hosts)}" for name in ("uuid", "in_tree")]
    for query in (*filters(cloud), *named):
        yield f"limit=10000&{everything}&{query}"
    yield f"limit=10000&{everything}"
    yield f"limit=1000&{everything},allocations"


def totals(cloud):
    for by in ("tree", "aggregate", "trait"):
        yield f"by={by}&limit=10000"
        yield f"by={by}&limit=1"
        for query in filters(cloud):
            yield f"by={by}&limit=10000&{query}"
    yield "in_tree=" + several(cloud.hosts)
    yield "mix=day&by=tree&limit=10000"


def searches(cloud):
    """Queries for candidates at their limits."""
    yield WANTED
    yield "resources=VGPU:1"
    for name in ("in_tree", "in_subtree", "root_in_tree"):
        yield f"{WANTED}&{name}={several(cloud.hosts)}"
    yield f"{WANTED}&root_in_tree=!{several(cloud.hosts)}"
    yield f"{WANTED}&root_member_of={several(cloud.aggregates)}"
    for query in filters(cloud):
        yield f"{WANTED}&{query}"
    zone = cloud.aggregates[0]
    filtered = "&member_of_{n}=" + zone + "&required_{n}=" + TRAITS[0]
    for count in (2, 32, 33, 512):
        yield groups(count) + "&limit=1000"
        yield groups(count, filtered) + "&limit=1000"
    yield groups(32).replace("none", "isolate")
    yield "resources=VGPU:12&can_split=VGPU"
    near = "resources1=VCPU:1&resources2=VGPU:1&resources3=VGPU:1&group_policy=none"
    yield f"{near}&same_subtree=2,3"
    choices = itertools.combinations(range(12), 5)
    lists = "&".join("same_subtree=" + ",".join(f"_{n}" for n in choice) for choice in choices)
    yield f"{groups(12)}&limit=10&{lists}"
    yield f"{WANTED}&" + "&".join(f"required=in:{name},{TRAITS[0]}" for name in TRAITS * 5)
    for order in (
        "pack",
        "spread",
        "pack_providers",
        "spread_providers",
        "shuffle:x",
        "keep:day:VCPU",
    ):
        yield f"{WANTED}&limit=1000&order_by={order}"
    yield f"{near}&limit=1000&order_by=near:2:3,far:1:2,pack,shuffle:y"
    yield f"{WANTED}&limit=1000&preferred=" + ",".join(TRAITS)
    yield from attributes_asked(near)


def attributes_asked(near):
    """Expressions of the greatest size, and many comparisons."""
    numbers = quote("exists n0 or not n1 in (" + ",".join("v1" for _ in range(64)) + ")")
    texts = quote(" or ".join(f"n{at % 10} == 'x{at}'" for at in range(64)))
    for expression in (numbers, texts):
        yield f"{WANTED}&root_where={expression}"
        yield WANTED + f"&where={expression}" * 16
        yield groups(32, "&where_{n}=" + expression) + "&limit=1000"
    for name in ("match", "distinct"):
        yield f"{near}&{name}=n0:2:3"
        lists = "&".join(
            f"{name}=n{at}:" + ":".join(f"_{n}" for n in range(12)) for at in range(99)
        )
        yield f"{groups(12)}&limit=10&{lists}"
    yield f"{near}&limit=1000&order_by=most:n0:2,least:n1:3"


def explained(_cloud):
    for query in (WANTED, f"{WANTED}&required=" + ",".join(TRAITS), groups(512)):
        yield f"{query}&nearest=50"


def alternatives(_cloud):
    for count in (1, 32, 512):
        yield {"alternatives": [groups(count, amount=5_000 + number) for number in range(16)]}
    yield {"alternatives": [f"{WANTED}&{every_trait(8)}"] * 16}


def placements(cloud):
    yield {"requests": [placed([WANTED], 1)]}
    orders = ("pack,spread_providers", "shuffle:x", "keep:day:VCPU")
    for query in (WANTED, *(f"{WANTED}&order_by={order}" for order in orders)):
        yield {"requests": [placed([query], 1000)], "dry_run": True}
    queries = [WANTED.replace("VCPU:1", f"VCPU:{1 + number}") for number in range(16)]
    yield {"requests": [placed(queries, 15) for _ in range(64)], "dry_run": True}
    many = [groups(512, amount=number) for number in range(16)]
    yield {"requests": [placed(many, 15)], "dry_run": True}
    aggregates = cloud.aggregates[3:1003]
    for domains in ("tree", aggregates):
        for kind in ({"max_per_domain": 1000}, {"max_skew": 1000}):
            rules = [{"domains": domains, **kind, "with": consumers(1000)}] * 16
            yield {"requests": [placed([WANTED], 1000)], "rules": rules, "dry_run": True}
    affine = {
        "requests": [placed([WANTED], 1000)],
        "rules": [{"domains": aggregates, "same_domain": True}],
        "dry_run": True,
    }
    yield affine
    yield affine | {"explain": True}


def capacity(cloud):
    many = {str(number): WANTED.replace(":1,", f":{1 + number % 60},") for number in range(256)}
    near = "resources1=VCPU:1&resources2=VGPU:1&group_policy=none"
    for domains in ("tree", cloud.aggregates[3:1003]):
        for requests in (many, {"a": WANTED}, {"a": near}, {"a": groups(512)}):
            yield {"requests": requests, "domains": domains, "limit": 10_000}


def what_if(cloud):
    """All that may be given, at its limits."""
    entries = [
        {"uuid": uuid, "name": f"given-{number}", "inventories": {"VCPU": {"total": 8}}}
        for number, uuid in enumerate(consumers(1000))
    ]
    yield {"given": {"release": consumers(10_000), "without": cloud.hosts[3:1003]}}
    yield {"given": {"providers": entries}}
    yield {"given": {"place": {"requests": [{"query": WANTED, "amount": 20}] * 64}}}


def survival(cloud):
    for domains in ("tree", cloud.aggregates[3:1003]):
        yield {"domains": domains, "limit": 10_000, "all": True}


def moves(cloud):
    """All goals, at their limits."""
    for goal in (
        {"empty": cloud.hosts[3:1003]},
        {"fit": {"query": WANTED, "amount": 2_000_000_000}},
    ):
        yield {"goal": goal, "max_moves": 10_000, "explain": True}


def batches(cloud):
    """A thousand hosts with something else each time."""
    number = next(cloud.numbers)
    entries = [
        {
            "uuid": uuid,
            "inventories": {name: {"total": 2_000 + number} for name in STOCK},
            "traits": [TRAITS[(number + at) % len(TRAITS)]],
        }
        for at, uuid in enumerate(cloud.hosts[-1000:])
    ]
    yield {"providers": entries}


def mix(query):
    """A mix of as many requests as it may have."""
    requests = {
        str(n): {"query": query.replace("VCPU:1", f"VCPU:{n + 1}"), "weight": 1} for n in range(64)
    }
    return {"requests": requests}


def claims(cloud):
    hosts = zip(consumers(1000), cloud.hosts[3000:], strict=False)
    resources = {"resources": {"VCPU": 1, "MEMORY_MB": 1}}
    yield {consumer: claim_of({host: resources}) for consumer, host in hosts}


CASES = {
    "GET /resource_providers": lists,
    "GET /allocation_candidates": searches,
    "GET /allocation_candidates/explain": explained,
    "GET /treeclaim/providers": bulk,
    "GET /treeclaim/totals": totals,
    "POST /allocations": claims,
    "POST /treeclaim/candidates": alternatives,
    "POST /treeclaim/capacity": capacity,
    "POST /treeclaim/moves": moves,
    "POST /treeclaim/placements": placements,
    "POST /treeclaim/providers": batches,
    "POST /treeclaim/survival": survival,
    "POST /treeclaim/totals?by=tree&limit=10000": what_if,
}
"""Queries or bodies of the operations whose work grows with the cloud, at the limits that the contract and the options
set."""

COMPLETE = {"POST /treeclaim/placements": 409}
"""The greatest status of an operation that shows that it did its work; of the others it is 204."""


@pytest.mark.parametrize("name", CASES)
def test_operations_hold_the_forest_briefly(cloud, monkeypatch, name):
    method, target = name.split()
    path, _, fixed_query = target.partition("?")
    # As if others always waited: alone, a question may go on, as it ends when somebody comes.
    monkeypatch.setattr(turn_module, "ALONE_PATIENCE", turn_module.PATIENCE)

    def cases():
        for number, case in enumerate(CASES[name](cloud)):
            yield f"{number}: {str(case)[:60]}", case

    def measure(case):
        query, body = (case, None) if isinstance(case, str) else (fixed_query, case)
        cloud.change_shape()
        held, answer = cloud.longest_hold(cloud.ask, method, path, query, body)
        # On a busy machine the child that answers may come to its deadline.
        is_late = answer.status == 400 and "search_seconds" in answer.detail
        assert is_late or answer.status <= COMPLETE.get(name, 204), answer.body
        worked = cloud.application.longest
        followed, _ = cloud.longest_hold(cloud.generation, cloud.hosts[0])
        return {
            "held": (held, MOST_SECONDS),
            "worked": (worked, LONGEST_STRETCH),
            "followed": (0.0 if name == LONG_TO_FOLLOW else followed, MOST_SECONDS),
        }

    assert excesses(cases, measure) == {}


def test_queries_with_100_000_holds_hold_the_forest_briefly(tmp_path):
    """Such a request does not keep others from the Forest."""
    url = f"sqlite:///{tmp_path}/placement.db"
    hosts = flat(1_000)
    write_world(url, hosts)
    write_servers(url, hosts, 1)
    write_promises(url, hosts, holds=100_000, requests=0)
    named = "&from_holds=" + ",".join(uuids_of_holds(64))
    explain = "/allocation_candidates/explain"
    lacking = {"requests": [placed(["resources=VCPU:9000"], 1)], "explain": True}
    requests = [
        ("GET", explain, "resources=VCPU:9000&nearest=50"),
        ("GET", explain, "resources=VCPU:9000&nearest=50" + named),
        ("GET", "/allocation_candidates", WANTED + named),
        ("GET", "/treeclaim/totals", "by=tree&limit=1000"),
        ("GET", "/treeclaim/holds", "limit=1000"),
        ("POST", "/treeclaim/placements", "", lacking),
    ]
    with services_on_database(url, tmp_path) as (services, application):
        cloud = Cloud(services, application, hosts.providers)
        cloud.ask("GET", "/allocation_candidates", WANTED)

        def measure(request):
            held, answer = cloud.longest_hold(cloud.ask, *request)
            assert b'"held":' in answer.body or request[1] != explain
            return {"held": (held, MOST_SECONDS)}

        assert excesses(lambda: enumerate(requests), measure) == {}


SOME_SECONDS = 4
"""For the work of a request."""

LATE = re.compile("took too long|was not done")
"""Texts of errors at the deadline."""

WITH_BODY = [operation for operation in OPERATIONS if operation.body is not None]


@pytest.mark.parametrize("operation", WITH_BODY, ids=lambda operation: operation.name)
def test_full_bodies_check_the_deadline(cloud, monkeypatch, operation):
    """A body that is as full as it may be is worked through with looks at the deadline.

    A request that takes longer than a few seconds ends at the deadline, which is as good.
    """
    store = cloud.services.store
    monkeypatch.setattr(store, "timeouts", replace(store.timeouts, write=SOME_SECONDS))
    host = cloud.hosts[4000]
    path = operation.path.format(
        uuid=host, consumer_uuid=host, name="CUSTOM_FULL", resource_class="VCPU", key="FULL"
    )

    def cases():
        names = Names(tuple(cloud.hosts[4000:]), WANTED, cloud.generation(host))
        return full_bodies(operation, names)

    def measure(make):
        answer = cloud.send(operation.method, path, body=make())
        assert answer.status < 500 or LATE.search(answer.detail), answer.body[:500]
        assert "does not validate" not in answer.body.decode(), answer.body[:500]
        return {"worked": (cloud.application.longest, LONGEST_STRETCH)}

    assert excesses(cases, measure) == {}
