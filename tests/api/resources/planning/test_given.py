# SPDX-License-Identifier: Apache-2.0
"""Errors of assumed entries are those of writes (contract page 101, section 1)."""

import pytest

from tests.api.resources.planning.clouds import (
    applied,
    host,
    uuid_of,
)

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
