# SPDX-License-Identifier: Apache-2.0
"""A worker that has followed any writes, its own and another's, responds byte for byte as a new one.

Every reading operation is sent with every parameter and every member of a body in the
description of the API: an addition there fails here until it has values."""

import json
import random
import re
from collections import Counter
from urllib.parse import quote
from uuid import UUID

import pytest

from tests.api.described import DESCRIBED, DOCUMENT
from tests.api.described import parameters as parameters_of
from tests.api.raw import send
from tests.bodies import wanted_by
from tests.service import fresh_database, start_on
from tests.tiers import count_worlds
from treeclaim.api.routes import OPERATIONS

HISTORIES = max(count_worlds(25) // 20, 2)
ROUNDS = 6
WRITES_EACH = 5
QUESTIONS_EACH = 60
VERSION = "1.39, treeclaim latest"

PROVIDERS = [str(UUID(int=10 + number)) for number in range(9)]
AGGREGATES = [str(UUID(int=100 + number)) for number in range(3)]
CONSUMERS = [str(UUID(int=1000 + number)) for number in range(4)]
HOLDS = [str(UUID(int=2000 + number)) for number in range(2)]
TRAITS = ["CUSTOM_A", "CUSTOM_B", "MISC_SHARES_VIA_AGGREGATE"]
CLASSES = ["VCPU", "MEMORY_MB"]
MIX = "expected"
KEYS = ["CLEANING", "SLOW"]
SUFFIXES = ["", "1", "_B"]

READS = [path for path, methods in DESCRIBED.items() if "get" in methods]
GROUPED = (
    "resources",
    "required",
    "member_of",
    "in_tree",
    "in_subtree",
    "preferred",
    "where",
    "tolerates",
)


def uuids(draw):
    names = draw.sample(PROVIDERS, draw.randint(1, 3))
    return f"in:{','.join(names)}" if len(names) > 1 else names[0]


def aggregates(draw):
    return draw.choice(["", "!"]) + f"in:{','.join(draw.sample(AGGREGATES, draw.randint(1, 2)))}"


def traits(draw):
    name = draw.choice(TRAITS)
    return draw.choice([name, f"!{name}", f"in:{','.join(TRAITS[:2])}"])


def attributes(draw):
    values = [1, 0, True, False, "1", "true", 80, "570.86"]
    return {name: draw.choice(values) for name in ("ecc", "mem_gib") if draw.random() < 0.7}


def expressions(draw):
    return draw.choice(
        ["exists mem_gib", "not ecc", "ecc or mem_gib in (1, '1', true)", "mem_gib >= v1.0"]
    )


def conditions(draw):
    use = {"on_use": True, **choose_members(draw, {"began": True})}
    time = choose_members(draw, {"until": "2999-01-01T00:00:00Z"})
    terms = {"effect": draw.choice(["no_new", "leave"]), **draw.choice([use, time])}
    return {draw.choice(KEYS): terms | choose_members(draw, {"reason": "by night"})}


def amounts(draw):
    classes = draw.sample(CLASSES, draw.randint(1, 2))
    return ",".join(f"{name}:{draw.randint(1, 3)}" for name in classes)


VALUES = {
    "associated": lambda draw: draw.choice(["true", "false"]),
    "by": lambda draw: draw.choice(["tree", "aggregate", "trait"]),
    "can_split": lambda draw: draw.choice(CLASSES),
    "consumer": lambda draw: draw.choice(CONSUMERS),
    "consumer_type": lambda draw: draw.choice(["INSTANCE", "MIGRATION", "all"]),
    "created_since": lambda draw: draw.choice(["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"]),
    "distinct": lambda draw: f"{draw.choice(['ecc', 'mem_gib'])}:1:_B",
    "drawable_by": lambda draw: draw.choice(["project", "other"]),
    "from_holds": lambda draw: ",".join(draw.sample(HOLDS, draw.randint(1, len(HOLDS)))),
    "group_policy": lambda draw: draw.choice(["none", "isolate"]),
    "in_subtree": uuids,
    "in_tree": uuids,
    "include": lambda draw: draw.choice(
        ["inventories,traits", "aggregates,usages", "attributes", "conditions"]
    ),
    "isolate": lambda draw: "1,_B",
    "kind": lambda draw: draw.choice(["over_capacity", "unused_trait,empty_tree", "must_leave"]),
    "limit": lambda draw: str(draw.choice([1, 2, 3, 5, 100])),
    "marker": lambda draw: "bm9uc2Vuc2U",
    "match": lambda draw: f"{draw.choice(['ecc', 'mem_gib'])}:_B:1",
    "member_of": aggregates,
    "mix": lambda draw: draw.choice([MIX, "none"]),
    "name": lambda draw: draw.choice(["p0", "p1", "in:CUSTOM_A,CUSTOM_B", "startswith:CUSTOM"]),
    "nearest": lambda draw: str(draw.randint(1, 3)),
    "order_by": lambda draw: draw.choice(
        [
            "pack",
            "spread",
            "pack_providers",
            "spread_providers:VCPU",
            "near:1:_B",
            "shuffle:x",
            f"keep:{MIX}:VCPU",
            "most:mem_gib:_B",
            "least:ecc:1",
        ]
    ),
    "preferred": lambda draw: f"{draw.choice(['', '!'])}CUSTOM_A,CUSTOM_B*3",
    "project_id": lambda draw: "project",
    "provider": lambda draw: draw.choice(PROVIDERS),
    "required": traits,
    "resource_class": lambda draw: draw.choice(["VCPU", "in:VCPU,MEMORY_MB"]),
    "resources": amounts,
    "root_in_tree": lambda draw: draw.choice(["", "!"]) + uuids(draw),
    "root_member_of": aggregates,
    "root_required": lambda draw: draw.choice(["", "!"]) + draw.choice(TRAITS),
    "root_where": expressions,
    "same_subtree": lambda draw: "1,_B",
    "since": lambda draw: "now",
    "split_policy": lambda draw: draw.choice(["pack", "even"]),
    "tolerates": lambda draw: draw.choice([*KEYS, ",".join(KEYS)]),
    "tree": lambda draw: draw.choice(PROVIDERS),
    "until_before": lambda draw: "2999-01-01T00:00:00Z",
    "user_id": lambda draw: "user",
    "uuid": lambda draw: draw.choice(PROVIDERS),
    "wait": lambda draw: "0",
    "where": expressions,
}
"""Values of each parameter of a query."""

SEARCHING = ("/allocation_candidates", "/allocation_candidates/explain")


def parameters(path):
    """The names of the parameters of an operation that reads."""
    # The description of the search has those of the standard; the extension's are explained too.
    described = DESCRIBED[SEARCHING[1] if path == SEARCHING[0] else path]["get"]
    not_of_the_search = ("tree", "nearest") if path == SEARCHING[0] else ()
    return [name for name in parameters_of(described) if name not in not_of_the_search]


def searched(draw, names):
    """A query of the search in which each group requests something."""
    suffixes = [suffix for suffix in SUFFIXES if draw.random() < 0.6] or [draw.choice(SUFFIXES)]
    pairs = [("resources" + suffix, amounts(draw)) for suffix in suffixes]
    if len(suffixes) > 1:
        pairs.append(("group_policy", VALUES["group_policy"](draw)))
    optional_names = [name for name in names if name not in ("resources", "group_policy")]
    for name in draw.sample(optional_names, draw.randint(0, 3)):
        needs_both = name in ("same_subtree", "isolate", "match", "distinct")
        if needs_both and not {"1", "_B"} <= set(suffixes):
            continue
        suffix = draw.choice(suffixes) if name in GROUPED else ""
        value = VALUES[name](draw)
        if value.startswith(("near", "most", "least")) and not {"1", "_B"} <= set(suffixes):
            value = "pack"
        if name == "can_split" and "" not in suffixes:
            continue
        pairs.append((name + suffix, value))
    return "&".join(f"{name}={quote(value, safe=',:*!')}" for name, value in pairs)


def alternatives(draw):
    """The body of a question for the first query that has a candidate."""
    names = parameters(SEARCHING[0])
    return {"alternatives": [searched(draw, names) for _ in range(draw.randint(1, 2))]}


def capacity(draw):
    """The body of a question for how many fit."""
    queries = {name: searched(draw, parameters(SEARCHING[0])) for name in "ab"}
    return {"requests": queries, **choose_members(draw, {"domains": domains(draw), "limit": 2})}


def domains(draw):
    return draw.choice(["tree", AGGREGATES])


def placements(draw):
    """The body of a call that places consumers, and writes nothing."""
    count = draw.randint(1, 2)
    requests = [
        wanted_by(
            [str(UUID(int=5000 + 10 * at + number)) for number in range(3)],
            *alternatives(draw)["alternatives"],
            project_id="project",
            user_id="user",
        )
        for at in range(count)
    ]
    for request in requests:
        _with_holds(draw, request)
    if draw.random() < 0.2:
        # Consumers that may have allocations already.
        requests[0]["consumers"].append(draw.choice(CONSUMERS))
    rules = [rule(draw, count) for _ in range(draw.randint(0, 2))]
    if sum("same_domain" in placed_rule for placed_rule in rules) > 1:
        del rules[1:]
    partial = draw.random() < 0.5 and not any(
        "same_domain" in placed_rule for placed_rule in rules
    )
    flags = {"dry_run": True, "explain": draw.random() < 0.5, "partial": partial}
    return {"requests": requests, "rules": rules, **flags}


def _with_holds(draw, request):
    """Add to a request draws from holds, new holds, or its placement request."""
    queries = [query for query in request["alternatives"] if "from_holds" not in query]
    request["alternatives"] = queries or ["resources=VCPU:1"]
    kind = draw.random()
    if kind < 0.3:
        request["from_holds"] = draw.sample(HOLDS, draw.randint(1, len(HOLDS)))
    elif kind < 0.4:
        del request["consumer_type"]
        terms = {"returns": True, "projects": ["other"], "note": "n", "drawn": {}}
        request["hold"] = {"until": "2999-01-01T00:00:00Z", **choose_members(draw, terms)}


def rule(draw, count):
    name, value = draw.choice([("max_per_domain", 1), ("max_skew", 1), ("same_domain", True)])
    partners = [consumer for consumer in CONSUMERS if draw.random() < 0.5]
    members: dict[str, object] = {"with": partners, "requests": [draw.randrange(count)]}
    if name != "same_domain":
        members = {**members, "soft": True}
    return {"domains": domains(draw), name: value, **choose_members(draw, members)}


def choose_members(draw, members):
    return {name: value for name, value in members.items() if draw.random() < 0.5}


def draw_assumptions(draw):
    queries = [query for query in alternatives(draw)["alternatives"] if "from_holds" not in query]
    amounts = {
        "resource_provider_generation": 0,
        "reserved": 1,
        "min_unit": 1,
        "max_unit": 4,
        "step_size": 1,
    }
    stock = {"total": 4, **choose_members(draw, amounts | {"allocation_ratio": 2.0})}
    additions = {
        "parent_provider_uuid": None,
        "root_provider_uuid": None,
        "aggregates": AGGREGATES,
        "traits": ["CUSTOM_NEW"],
        "attributes": attributes(draw),
        "conditions": conditions(draw),
        # It is new: this is refused.
        "generation": 0,
    }
    new_uuid = str(UUID(int=7000))
    stock |= choose_members(
        draw, {"consumes": [{"provider": new_uuid, "resource_class": "MEMORY_MB", "amount": 2}]}
    )
    entry = {
        "uuid": new_uuid,
        "name": "new",
        "inventories": {"VCPU": stock, "MEMORY_MB": {"total": 9}},
    }
    entry |= choose_members(draw, additions)
    members = {
        "release": draw.sample(CONSUMERS, 2),
        "without": [str(UUID(int=9000))],
        "providers": [entry],
        "place": {"requests": [{"query": query, "amount": 2} for query in queries]},
    }
    return choose_members(draw, members)


def perhaps_given(draw):
    return {"given": draw_assumptions(draw)} if draw.random() < 0.1 else {}


def planned(draw):
    """The members that a question for survival and one for moves have in common."""
    return {
        "explain": True,
        "given": draw_assumptions(draw),
        "requests": {draw.choice(CONSUMERS): ["resources=VCPU:1"]},
        "rules": [
            {"domains": domains(draw), "consumers": CONSUMERS}
            | draw.choice([{"max_per_domain": 1}, {"same_domain": True}])
        ],
    }


def survival(draw):
    """Return the body of a request for survival."""
    members = planned(draw) | {
        "all": True,
        "consumer_types": ["INSTANCE"],
        "from_holds": draw.sample(HOLDS, 1),
        "limit": 2,
    }
    return {"domains": domains(draw), **choose_members(draw, members)}


def moves(draw):
    """The body of a question for moves."""
    goal = draw.choice(
        [
            {"empty": [draw.choice(PROVIDERS)]},
            {"empty_aggregate": draw.choice(AGGREGATES)},
            {"leave": True},
            {"fit": {"query": "resources=VCPU:1", "amount": 2}},
            {"keep": {"mix": MIX, "empty_trees": True}},
        ]
    )
    movable = choose_members(draw, {"projects": ["p"], "except": draw.sample(CONSUMERS, 1)})
    members = planned(draw) | {
        "movable": {"consumer_types": ["INSTANCE"], **movable},
        "both_at_once": False,
        "max_moves": 2,
    }
    return {"goal": goal, **choose_members(draw, members)}


BODIES = {
    "/treeclaim/audit": lambda draw: {
        "living": {"INSTANCE": draw.sample(CONSUMERS, 2)},
        **choose_members(draw, {"older_than": 0}),
    },
    "/treeclaim/candidates": lambda draw: alternatives(draw) | perhaps_given(draw),
    "/treeclaim/capacity": lambda draw: capacity(draw) | perhaps_given(draw),
    "/treeclaim/flavors": lambda draw: {
        "flavors": [{"name": "f", "vcpus": draw.randint(0, 4)}],
        "as_nova": draw.random() < 0.5,
    },
    "/treeclaim/placements": lambda draw: placements(draw) | perhaps_given(draw),
    "/treeclaim/moves": moves,
    "/treeclaim/survival": survival,
    "/treeclaim/totals": lambda draw: {"given": draw_assumptions(draw)},
}
"""Bodies of each POST that changes nothing."""

BY_CHILDREN = {"/treeclaim/survival", "/treeclaim/totals"}
"""Requests that a child process always answers."""

DRY_RUNS_IN_THE_DATABASE = {"/treeclaim/providers", "/treeclaim/audit/repairs"}
"""Requests that are answered from the database alone, without state in a worker."""


def questions(draw):
    """Method, path, query and body of a question."""
    kind = draw.random()
    if kind < 0.4:
        # An explanation runs in a child process, which costs as much as ten searches.
        path = draw.choices(SEARCHING, (4, 1))[0]
        return "GET", path, searched(draw, parameters(path)), None
    if kind < 0.7:
        # Assumptions and plans run in child processes too.
        path = draw.choices(
            sorted(BODIES), [1 if at in BY_CHILDREN else 4 for at in sorted(BODIES)]
        )[0]
        return "POST", path, "", json.dumps(BODIES[path](draw)).encode()
    path = draw.choice(READS)
    while path in SEARCHING:
        path = draw.choice(READS)
    has = parameters(path)
    parts = draw.sample(has, draw.randint(0, min(len(has), 2)))
    query = "&".join(f"{name}={quote(VALUES[name](draw), safe=',:*!')}" for name in parts)
    path = path.replace("{uuid}", draw.choice(PROVIDERS)).replace(
        "{consumer_uuid}", draw.choice(CONSUMERS)
    )
    path = path.replace("{resource_class}", draw.choice(CLASSES))
    name = draw.choice(TRAITS if path.startswith("/traits") else [*CLASSES, MIX])
    return "GET", path.replace("{name}", name), query, None


def write(draw, service):
    """Send a write; a refused write changes nothing."""
    provider = draw.choice(PROVIDERS)
    at = f"/resource_providers/{provider}"
    response = send(service, "GET", at)
    if draw.random() < 0.05:
        mix(draw, service)
        return
    if response.status == 404 or draw.random() < 0.08:
        name = f"p{PROVIDERS.index(provider)}"
        body = {"name": name, "uuid": provider}
        if draw.random() < 0.6:
            body["parent_provider_uuid"] = draw.choice(PROVIDERS)
        call(service, "POST", "/resource_providers", body)
        put_inventories(draw, service, at, 0)
        return
    generation = response.json()["generation"]
    of_generation = {"resource_provider_generation": generation}
    traits = {"traits": draw.sample(TRAITS, draw.randint(0, 2))} | of_generation
    aggregates = {"aggregates": draw.sample(AGGREGATES, draw.randint(0, 2))} | of_generation
    drawn_attributes = {"attributes": attributes(draw)} | of_generation
    names = {"names": {draw.choice(AGGREGATES): draw.choice([None, "rack 7", "rack 8"])}}
    parent = {
        "name": f"p{PROVIDERS.index(provider)}",
        "parent_provider_uuid": draw.choice([None, *PROVIDERS]),
    }
    writes = [
        lambda: put_inventories(draw, service, at, generation),
        lambda: call(service, "PUT", f"{at}/traits", traits),
        lambda: call(service, "PUT", f"{at}/aggregates", aggregates),
        lambda: call(
            service, "PUT", f"/treeclaim/providers/{provider}/attributes", drawn_attributes
        ),
        lambda: condition(draw, service, provider),
        lambda: call(service, "POST", "/treeclaim/aggregates/names", names),
        lambda: call(service, "PUT", at, parent),
        lambda: call(service, "DELETE", at, None),
        *[lambda: claim(draw, service, provider)] * 2,
    ]
    draw.choice(writes)()


def condition(draw, service, provider):
    """Give a provider a condition, or take it from all, so that not all have some in the end."""
    if draw.random() < 0.5:
        for key, terms in conditions(draw).items():
            call(service, "PUT", f"/treeclaim/providers/{provider}/conditions/{key}", terms)
        return
    key = draw.choice(KEYS)
    for other in PROVIDERS:
        call(service, "DELETE", f"/treeclaim/providers/{other}/conditions/{key}", None)


def mix(draw, service):
    """Let something else be expected."""
    queries = [f"resources={amounts(draw)}" for _ in range(2)] + ["resources=VCPU:1"]
    body = {
        str(at): {"query": query, "weight": draw.randint(1, 9)} for at, query in enumerate(queries)
    }
    call(service, "PUT", f"/treeclaim/mixes/{MIX}", {"requests": body})


def put_inventories(draw, service, at, generation):
    """Replace the inventories of a provider."""
    stock = {name: {"total": draw.randint(1, 9)} for name in CLASSES if draw.random() < 0.8}
    if len(stock) > 1 and draw.random() < 0.3:
        # One class of the provider consumes another one of it, or nothing any more.
        consuming, consumed = draw.sample(sorted(stock), 2)
        entry = {"provider": at[-36:], "resource_class": consumed, "amount": draw.randint(1, 2)}
        stock[consuming]["consumes"] = draw.choice([[entry], [entry], []])
    body = {"inventories": stock, "resource_provider_generation": generation}
    call(service, "PUT", f"{at}/inventories", body)


def claim(draw, service, provider):
    """Claim an amount of a provider for a consumer, or release the consumer."""
    consumer = draw.choice([*CONSUMERS, *HOLDS])
    stored_allocations = send(service, "GET", f"/allocations/{consumer}").json()
    amount = {"resources": {draw.choice(CLASSES): draw.randint(1, 3)}}
    body = {
        "allocations": {} if draw.random() < 0.2 else {provider: amount},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": stored_allocations.get("consumer_generation"),
    }
    if consumer in HOLDS:
        body["hold"] = {"returns": draw.random() < 0.5}
    else:
        body["consumer_type"] = "INSTANCE"
        body |= choose_members(draw, {"from_holds": [draw.choice(HOLDS)], "tolerates": KEYS[:1]})
    call(service, "PUT", f"/allocations/{consumer}", body)


def call(service, method, path, body):
    content = None if body is None else json.dumps(body).encode()
    answer = send(service, method, path, body=content, version=VERSION)
    assert answer.status < 500, (method, path, body, answer)


def ask(service, question):
    method, path, query, body = question
    answer = send(service, method, path, query=query.encode(), body=body, version=VERSION)
    return answer.status, re.sub(rb"req-[0-9a-f-]{36}", b"request", answer.body)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(HISTORIES))
def test_worker_with_a_history_responds_like_a_new_one(number, run_seed, tmp_path):
    draw = random.Random(f"{run_seed} {number}")
    url = fresh_database(tmp_path)
    status_counts = Counter()
    with start_on(url, tmp_path) as old_service, start_on(url, tmp_path) as other:
        for name in TRAITS[:2]:
            call(old_service, "PUT", f"/traits/{name}", None)
        for _ in range(3 * len(PROVIDERS)):
            write(draw, old_service)
        mix(draw, old_service)
        for _ in range(ROUNDS):
            # Sent before the writes too, so that caches must follow them.
            round_of_questions = [questions(draw) for _ in range(QUESTIONS_EACH)]
            for question in round_of_questions:
                ask(old_service, question)
            for _ in range(WRITES_EACH):
                write(draw, draw.choice([old_service, other]))
            with start_on(url, tmp_path) as new_service:
                while round_of_questions:
                    question = round_of_questions.pop()
                    long_lived_answer, fresh_answer = (
                        ask(old_service, question),
                        ask(new_service, question),
                    )
                    assert long_lived_answer == fresh_answer, question
                    status_counts[long_lived_answer[0]] += 1
                    round_of_questions += next_page(question, long_lived_answer[1])
    assert status_counts[200] > 0.6 * sum(status_counts.values()), status_counts


def test_explanation_mentions_no_condition_that_has_gone(tmp_path):
    """No provider of the tree has both classes; a condition of another tree began and ended."""
    url = fresh_database(tmp_path)
    query = "resources1=VCPU:1,MEMORY_MB:1&resources2=MEMORY_MB:1&where2=ecc"
    question = ("GET", "/allocation_candidates/explain", query, None)
    trees = [
        {"name": "p0", "uuid": PROVIDERS[0], "inventories": {"VCPU": {"total": 4}}},
        {
            "name": "p1",
            "uuid": PROVIDERS[1],
            "parent_provider_uuid": PROVIDERS[0],
            "inventories": {"MEMORY_MB": {"total": 4}},
        },
        {"name": "p2", "uuid": PROVIDERS[2]},
    ]
    condition = f"/treeclaim/providers/{PROVIDERS[2]}/conditions/CLEANING"
    with start_on(url, tmp_path) as old_service:
        call(old_service, "POST", "/treeclaim/providers", {"providers": trees})
        call(old_service, "PUT", condition, {"effect": "no_new"})
        during = ask(old_service, question)
        call(old_service, "DELETE", condition, None)
        with start_on(url, tmp_path) as new_service:
            assert ask(old_service, question) == ask(new_service, question) == during


def next_page(question, answer):
    """The question for the page behind an answer, if there is one."""
    method, path, _, body = question
    link = re.search(rb'"rel": ?"next", ?"href": ?"[^"?]*[?]([^"]*)"', answer)
    return [(method, path, link[1].decode(), body)] if link else []


@pytest.mark.slow
def test_every_member_of_a_body_has_values():
    """Every POST that only reads, or has a dry run, is called with all its members."""
    bodies = {}
    for operation in OPERATIONS:
        described = DESCRIBED[operation.path][operation.method.lower()].get("requestBody")
        if operation.method == "POST" and described:
            names = members(described["content"]["application/json"]["schema"])
            reads = operation.is_read_only or (operation.policy or "").endswith(":list")
            if reads or "dry_run" in names:
                bodies[operation.path] = names
    assert BODIES.keys() == bodies.keys() - DRY_RUNS_IN_THE_DATABASE
    draw = random.Random(0)
    for path, make_body in BODIES.items():
        used = set().union(*(keys_of(make_body(draw)) for _ in range(800)))
        assert bodies[path] <= used, (path, bodies[path] - used)


def members(schema):
    """The names of all members that a schema has, at any depth."""
    if isinstance(schema, list):
        return set().union(*map(members, schema))
    if not isinstance(schema, dict):
        return set()
    if isinstance(schema.get("$ref"), str):
        return members(DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]])
    names = (
        set(schema.get("properties", {})) if isinstance(schema.get("properties"), dict) else set()
    )
    return names.union(*map(members, schema.values()))


def keys_of(document):
    if isinstance(document, list):
        return set().union(*map(keys_of, document))
    if not isinstance(document, dict):
        return set()
    return set(document).union(*map(keys_of, document.values()))
