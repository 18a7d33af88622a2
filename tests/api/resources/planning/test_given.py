# SPDX-License-Identifier: Apache-2.0
"""Answers under assumptions are those of a cloud in which these are true (contract page 101, section 1)."""

from contextlib import contextmanager
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
from tests.bodies import wanted_by
from tests.service import client_of, filled_database_of, services_on_database


@contextmanager
def cloud(folder):
    folder.mkdir(exist_ok=True)
    url = filled_database_of(four_hosts, folder)
    with (
        services_on_database(url, folder) as (services, application),
        client_of(application, **HEADERS) as client,
    ):
        yield client, services


def four_hosts(client):
    client.headers.update(HEADERS)
    applied(
        client,
        host("a", "r1", VCPU=8),
        host("b", "r1", VCPU=4) | {"attributes": {"ecc": True}},
        host("c", "r2", VCPU=6, MEMORY_MB=64),
        host("d", VCPU=2),
        host("a-child", parent="a", CUSTOM_GPU=4),
    )
    instance(client, "i1", "a", 6)
    instance(client, "i2", "b", 4)
    claimed(client, "i3", {"c": {"VCPU": 2, "MEMORY_MB": 32}, "d": {"VCPU": 1}})
    claimed(client, "h", {"a": 2}, kind="TREECLAIM_HOLD", hold={"returns": True})
    claimed(client, "i4", {"a": 1}, from_holds=[uuid_of("h")])


def fits(client, query, given):
    body = {"requests": {"x": query}, "given": given}
    answer = client.post("/treeclaim/capacity", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["capacity"]["x"]["fits"]


def without_generations(document):
    """The contents of an answer without its counters."""
    if isinstance(document, dict):
        return {
            key: without_generations(value)
            for key, value in document.items()
            if key not in {"given", "cursor", "request_id"}
        }
    if isinstance(document, list):
        return [without_generations(one) for one in document]
    return document


QUERIES = (
    "resources=VCPU:1",
    "resources=VCPU:5",
    "resources=VCPU:3&order_by=pack",
    "resources=VCPU:1&where=ecc",
    "resources_N=CUSTOM_NEW:1&required_N=CUSTOM_SHINY",
    f"resources=VCPU:1&from_holds={uuid_of('h')}",
)


def everything(client, given=None):
    """The answers of a cloud to questions of all kinds."""
    found = []
    for query in QUERIES:
        body = {"alternatives": [query]} | ({} if given is None else {"given": given})
        answer = client.post("/treeclaim/candidates", json=body)
        found.append((answer.status_code, without_generations(answer.json())))
        body = {"requests": {"x": query}, "domains": "tree"} | (
            {} if given is None else {"given": given}
        )
        answer = client.post("/treeclaim/capacity", json=body)
        found.append((answer.status_code, without_generations(answer.json())))
    for path in ("/treeclaim/totals?by=tree", "/treeclaim/totals?by=trait&resource_class=VCPU"):
        answer = client.get(path) if given is None else client.post(path, json={"given": given})
        assert answer.status_code == 200, answer.text
        found.append(without_generations(answer.json()))
    return found


def release(client, name):
    assert client.delete(f"/allocations/{uuid_of(name)}").status_code == 204


def remove_tree(client, names):
    """Take trees away with all that is allocated there."""
    for consumer in ("i1", "i2", "i3", "i4", "h"):
        path = f"/allocations/{uuid_of(consumer)}"
        body = client.get(path).json()
        left = {
            at: {"resources": some["resources"]}
            for at, some in body["allocations"].items()
            if at not in {uuid_of(name) for name in names}
        }
        if len(left) != len(body["allocations"]):
            if left:
                more = {
                    key: body[key]
                    for key in ("project_id", "user_id", "consumer_type", "consumer_generation")
                }
                assert client.put(path, json={"allocations": left} | more).status_code == 204
            else:
                release(client, consumer)
    for name in names:
        assert client.delete(f"/resource_providers/{uuid_of(name)}").status_code == 204


CHANGES: dict[str, Any] = {
    "release": (
        {"release": [uuid_of("i1"), uuid_of("nobody")]},
        lambda client: release(client, "i1"),
    ),
    "without": (
        {"without": [uuid_of("d"), uuid_of("nothing")]},
        lambda client: remove_tree(client, ["d"]),
    ),
    "without a tree named by its child": (
        {"without": [uuid_of("a-child")], "release": [uuid_of("i4"), uuid_of("h")]},
        lambda client: (
            release(client, "i4"),
            release(client, "h"),
            remove_tree(client, ["a-child", "a"]),
        ),
    ),
    "new hosts and other ratios": (
        {
            "providers": [
                host("e", "r2", traits=["CUSTOM_SHINY"], VCPU=8),
                host("e-child", parent="e", traits=["CUSTOM_SHINY"], CUSTOM_NEW=3),
                {
                    "name": "c",
                    "inventories": {
                        "VCPU": {"total": 6, "allocation_ratio": 2.0},
                        "MEMORY_MB": {"total": 64},
                    },
                },
                {"uuid": uuid_of("d"), "name": "renamed", "traits": ["CUSTOM_SHINY"]},
                {"uuid": uuid_of("a"), "name": "a", "attributes": {"ecc": True, "gib": 80}},
                {"uuid": uuid_of("b"), "name": "b", "traits": ["CUSTOM_SHINY"]},
            ]
        },
        None,
    ),
    "moved subtrees": (
        {
            "providers": [
                host("z", VCPU=1),
                {"uuid": uuid_of("a-child"), "parent_provider_uuid": uuid_of("b")},
                {"uuid": uuid_of("d"), "parent_provider_uuid": uuid_of("z")},
            ]
        },
        None,
    ),
    "placed": (
        {"place": {"requests": [{"query": "resources=VCPU:3", "amount": 40}]}},
        lambda client: place(client, 40),
    ),
}


def place(client, amount):
    request = wanted_by([uuid_of(f"new{number}") for number in range(amount)], "resources=VCPU:3")
    body = {"requests": [request], "partial": True}
    answer = client.post("/treeclaim/placements", json=body)
    assert answer.status_code == 201, answer.text
    return len(answer.json()["placements"])


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_assumptions_give_the_same_responses_as_writes(tmp_path, name):
    given, write = CHANGES[name]
    with cloud(tmp_path / "one") as (client, _):
        before = everything(client)
        asked = everything(client, given)
        # Nobody else sees it.
        assert everything(client) == before
        if write is None:
            applied(client, *given["providers"])
        else:
            write(client)
        after = everything(client)
    assert asked == after
    assert asked != before


INVALID = [
    {"name": "nobody"},
    {"uuid": uuid_of("x")},
    {"uuid": uuid_of("y"), "name": "b"},
    {"uuid": uuid_of("a"), "generation": 99},
    {"uuid": uuid_of("b"), "parent_provider_uuid": uuid_of("nothing")},
    {"uuid": uuid_of("slices"), "traits": ["NO_SUCH"]},
    {"uuid": uuid_of("c"), "inventories": {"NO_SUCH": {"total": 1}}},
    {"uuid": uuid_of("c")},
    {"uuid": uuid_of("a"), "parent_provider_uuid": uuid_of("a")},
    {"uuid": uuid_of("c"), "inventories": {"VCPU": {"total": 1, "reserved": 1}}},
    {"uuid": uuid_of("d"), "inventories": {}},
    {"uuid": uuid_of("v"), "name": "v", "parent_provider_uuid": uuid_of("v")},
]
"""Entries, each with a mistake of its own or none."""


def card(name, **inventories):
    """An entry of a provider, whose inventories are told in full."""
    return {"uuid": uuid_of(name), "inventories": inventories}


def consuming(*names):
    """An inventory of four, each of which takes a slice of each of some providers."""
    entries = [
        {"provider": uuid_of(name), "resource_class": "CUSTOM_SLICE", "amount": 1}
        for name in names
    ]
    return {"total": 4, "consumes": entries}


CONSUMPTION = {
    "one that another consumes goes": [card("slices", CUSTOM_LEFT={"total": 1})],
    "one that its own provider consumes goes": [card("slices", CUSTOM_WHOLE={"total": 1})],
    "one that others consume that stays goes with one of them": [
        card("slices", CUSTOM_LEFT={"total": 1}),
        card("kinds", CUSTOM_B={"total": 4}),
    ],
    "a provider moves away from what it consumes": [
        {"uuid": uuid_of("kinds"), "parent_provider_uuid": None}
    ],
    "one between moves within the tree": [
        {"uuid": uuid_of("more"), "parent_provider_uuid": uuid_of("above")}
    ],
    "one above both moves along": [
        {"uuid": uuid_of("c"), "traits": []},
        {"uuid": uuid_of("above"), "parent_provider_uuid": uuid_of("b")},
    ],
    "one that is consumed is to consume": [card("slices", CUSTOM_SLICE=consuming("more"))],
    "of one that consumes": [
        card(
            "c",
            CUSTOM_N={
                "total": 1,
                "consumes": [
                    {"provider": uuid_of("kinds"), "resource_class": "CUSTOM_A", "amount": 1}
                ],
            },
        )
    ],
    "of itself": [card("more", CUSTOM_SLICE=consuming("more"))],
    "of none": [card("kinds", CUSTOM_A=consuming("a"), CUSTOM_B=consuming("slices", "d"))],
    "of nobody": [card("kinds", CUSTOM_A=consuming("more", "nobody")), card("more")],
    "of another tree": [card("a", CUSTOM_N=consuming("slices"))],
    "all of it goes": [card("slices"), card("kinds")],
    "both move": [
        {"uuid": uuid_of("slices"), "parent_provider_uuid": uuid_of("b")},
        {"uuid": uuid_of("kinds"), "parent_provider_uuid": uuid_of("slices")},
    ],
    "it consumes something else": [
        card("kinds", CUSTOM_A=consuming("more"), CUSTOM_B=consuming("more")),
        card("slices"),
    ],
}
"""Entries about the card below, in order of what they are about."""


ENTRIES = [*CONSUMPTION.values(), INVALID[:8], INVALID[8:], *([entry] for entry in INVALID)]


@pytest.mark.parametrize("entries", ENTRIES, ids=range(len(ENTRIES)))
def test_errors_of_assumed_entries_are_those_of_a_write(service, entries):
    applied(
        service,
        host("above", parent="c"),
        host("slices", parent="above", CUSTOM_SLICE=8),
        host("more", parent="slices", CUSTOM_SLICE=8),
        host("kinds", parent="more")
        | card("kinds", CUSTOM_A=consuming("slices"), CUSTOM_B=consuming("slices")),
    )
    for some in (entries, entries[::-1]):
        body = {"providers": some, "create_names": True, "dry_run": True}
        written = service.post("/treeclaim/providers", json=body)
        body = {"alternatives": ["resources=VCPU:1"], "given": {"providers": some}}
        asked = service.post("/treeclaim/candidates", json=body)
        told = [
            [(error["detail"], error["code"], error.get("conflict")) for error in errors]
            for errors in (answer.json().get("errors", ()) for answer in (written, asked))
        ]
        assert (asked.status_code, told[1]) == (written.status_code, told[0])
