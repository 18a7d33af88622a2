# SPDX-License-Identifier: Apache-2.0
"""A cloud of ten thousand hosts, and the requests to it at the limits that the contract and the options set."""

import itertools
import uuid
from urllib.parse import quote

import sqlalchemy as sa

from tests.bodies import claim_of, wanted_by
from tests.clouds import World, WorldMaker
from treeclaim.store.schema.tables import attributes

HOSTS = 10_000
QUERY_LENGTH = 60_000
"""Characters of a query: the server takes 64 KiB for the whole address."""

STOCK = {"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 2_000}
TRAITS = [f"CUSTOM_TRAIT_{number}" for number in range(300)]
WANTED = "resources=VCPU:1,MEMORY_MB:512,DISK_GB:10"
SPREAD_OUT = "resources1=VCPU:1&resources2=VGPU:1&resources3=VGPU:1&group_policy=none"


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


def mix():
    """A mix of as many requests as it may have."""
    queries = [WANTED.replace("VCPU:1", f"VCPU:{n + 1}") for n in range(64)]
    return {"requests": {str(n): {"query": q, "weight": 1} for n, q in enumerate(queries)}}


def every_trait(times):
    """A number of `required`, each value with all traits."""
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
    hosts = several(cloud.hosts)
    for query in (*filters(cloud), f"uuid={hosts}", f"in_tree={hosts}"):
        yield f"limit=10000&{everything}&{query}"
    yield f"limit=10000&{everything}"
    yield f"limit=1000&{everything},allocations"


def totals(cloud):
    for by in ("tree", "aggregate", "trait"):
        yield f"by={by}&limit=1"
        yield f"by={by}&limit=10000"
        for query in filters(cloud):
            yield f"by={by}&limit=10000&{query}"
    yield "in_tree=" + several(cloud.hosts)
    yield "mix=day&by=tree&limit=10000"


def searches(cloud):
    yield WANTED
    yield "resources=VGPU:1"
    for name in ("in_tree", "in_subtree", "root_in_tree"):
        yield f"{WANTED}&{name}={several(cloud.hosts)}"
    yield f"{WANTED}&root_in_tree=!{several(cloud.hosts)}"
    yield f"{WANTED}&root_member_of={several(cloud.aggregates)}"
    for query in filters(cloud):
        yield f"{WANTED}&{query}"
    filtered = "&member_of_{n}=" + cloud.aggregates[0] + "&required_{n}=" + TRAITS[0]
    for count in (2, 32, 33, 512):
        yield groups(count) + "&limit=1000"
        yield groups(count, filtered) + "&limit=1000"
    yield groups(32).replace("none", "isolate")
    yield "resources=VGPU:12&can_split=VGPU"
    yield f"{SPREAD_OUT}&same_subtree=2,3"
    choices = itertools.combinations(range(12), 5)
    subtrees = "&".join("same_subtree=" + ",".join(f"_{n}" for n in choice) for choice in choices)
    yield f"{groups(12)}&limit=10&{subtrees}"
    yield f"{WANTED}&" + "&".join(f"required=in:{name},{TRAITS[0]}" for name in TRAITS * 5)
    for order in ("pack", "spread", "pack_providers", "spread_providers", "shuffle:x", "keep:day:VCPU"):  # fmt: skip
        yield f"{WANTED}&limit=1000&order_by={order}"
    yield f"{SPREAD_OUT}&limit=1000&order_by=near:2:3,far:1:2,pack,shuffle:y"
    yield f"{WANTED}&limit=1000&preferred=" + ",".join(TRAITS)
    yield from searches_by_attributes()


def searches_by_attributes():
    """Expressions of the greatest size, and many comparisons."""
    numbers = quote("exists n0 or not n1 in (" + ",".join("v1" for _ in range(64)) + ")")
    texts = quote(" or ".join(f"n{at % 10} == 'x{at}'" for at in range(64)))
    for expression in (numbers, texts):
        yield f"{WANTED}&root_where={expression}"
        yield WANTED + f"&where={expression}" * 16
        yield groups(32, "&where_{n}=" + expression) + "&limit=1000"
    suffixes = ":".join(f"_{n}" for n in range(12))
    for name in ("match", "distinct"):
        yield f"{SPREAD_OUT}&{name}=n0:2:3"
        comparisons = "&".join(f"{name}=n{at}:{suffixes}" for at in range(99))
        yield f"{groups(12)}&limit=10&{comparisons}"
    yield f"{SPREAD_OUT}&limit=1000&order_by=most:n0:2,least:n1:3"


def explanations(_cloud):
    for query in (WANTED, f"{WANTED}&required=" + ",".join(TRAITS), groups(512)):
        yield f"{query}&nearest=50"


def alternatives(_cloud):
    for count in (1, 32, 512):
        yield {"alternatives": [groups(count, amount=5_000 + number) for number in range(16)]}
    yield {"alternatives": [f"{WANTED}&{every_trait(8)}"] * 16}


def placements(cloud):
    def dry_run(*requests, **members):
        return {"requests": list(requests), "dry_run": True, **members}

    yield {"requests": [placed([WANTED], 1)]}
    for order in ("", "&order_by=pack,spread_providers", "&order_by=shuffle:x", "&order_by=keep:day:VCPU"):  # fmt: skip
        yield dry_run(placed([WANTED + order], 1000))
    queries = [WANTED.replace("VCPU:1", f"VCPU:{1 + number}") for number in range(16)]
    yield dry_run(*(placed(queries, 15) for _ in range(64)))
    yield dry_run(placed([groups(512, amount=1 + number) for number in range(16)], 15))
    racks = cloud.aggregates[3:1003]
    for domains in ("tree", racks):
        for kind in ({"max_per_domain": 1000}, {"max_skew": 1000}):
            rules = [{"domains": domains, **kind, "with": consumers(1000)}] * 16
            yield dry_run(placed([WANTED], 1000), rules=rules)
    rules = [{"domains": racks, "same_domain": True}]
    yield dry_run(placed([WANTED], 1000), rules=rules, explain=True)


def capacity(cloud):
    flavors = {str(number): WANTED.replace(":1,", f":{1 + number % 60},") for number in range(256)}
    pairs = "resources1=VCPU:1&resources2=VGPU:1&group_policy=none"
    for domains in ("tree", cloud.aggregates[3:1003]):
        for requests in (flavors, {"a": WANTED}, {"a": pairs}, {"a": groups(512)}):
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
    fit = {"query": WANTED, "amount": 2_000_000_000}
    for goal in ({"empty": cloud.hosts[3:1003]}, {"fit": fit}):
        yield {"goal": goal, "max_moves": 10_000, "explain": True}


def batches(cloud):
    """A thousand hosts with something else each time."""
    number = next(cloud.numbers)
    inventories = {name: {"total": 2_000 + number} for name in STOCK}
    entries = [
        {"uuid": uuid, "inventories": inventories, "traits": [TRAITS[(number + at) % len(TRAITS)]]}
        for at, uuid in enumerate(cloud.hosts[-1000:])
    ]
    yield {"providers": entries}


def claims(cloud):
    resources = {"resources": {"VCPU": 1, "MEMORY_MB": 1}}
    hosts = cloud.hosts[3000:4000]
    yield {
        consumer: claim_of({host: resources})
        for consumer, host in zip(consumers(1000), hosts, strict=True)
    }


REQUESTS = {
    "GET /resource_providers": lists,
    "GET /allocation_candidates": searches,
    "GET /allocation_candidates/explain": explanations,
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
"""Queries and bodies of operations with work that grows with the cloud."""
