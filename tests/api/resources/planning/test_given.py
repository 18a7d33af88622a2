# SPDX-License-Identifier: Apache-2.0
"""Errors of assumed entries are those of writes (contract page 101, section 1)."""

import re

import pytest
import yaml

from tests.api.resources.planning.clouds import applied, uuid_of

TABLE = yaml.safe_load(
    re.sub(
        r"<(\w+)>",
        lambda name: uuid_of(name[1]),
        """
slices: &slices {total: 4, consumes: [{provider: <slices>, resource_class: CUSTOM_SLICE, amount: 1}]}
more: &more {total: 4, consumes: [{provider: <more>, resource_class: CUSTOM_SLICE, amount: 1}]}

# A card, beside the hosts a to d.
card:
  - {uuid: <above>, name: above, parent_provider_uuid: <c>}
  - {uuid: <slices>, name: slices, parent_provider_uuid: <above>, inventories: {CUSTOM_SLICE: {total: 8}}}
  - {uuid: <more>, name: more, parent_provider_uuid: <slices>, inventories: {CUSTOM_SLICE: {total: 8}}}
  - {uuid: <kinds>, name: kinds, parent_provider_uuid: <more>, inventories: {CUSTOM_A: *slices, CUSTOM_B: *slices}}

cases:
  # An inventory that another consumes goes; then the one that its own provider consumes.
  - [{uuid: <slices>, inventories: {CUSTOM_LEFT: {total: 1}}}]
  - [{uuid: <slices>, inventories: {CUSTOM_WHOLE: {total: 1}}}]
  # One that others consume that stay goes with one of these.
  - [{uuid: <slices>, inventories: {CUSTOM_LEFT: {total: 1}}}, {uuid: <kinds>, inventories: {CUSTOM_B: {total: 4}}}]
  # Providers move away from the provider that they consume, within the tree, and with a common ancestor.
  - [{uuid: <kinds>, parent_provider_uuid: null}]
  - [{uuid: <more>, parent_provider_uuid: <above>}]
  - [{uuid: <c>, traits: []}, {uuid: <above>, parent_provider_uuid: <b>}]
  # A consumed provider consumes, a consuming provider is consumed, and a provider consumes its own inventory.
  - [{uuid: <slices>, inventories: {CUSTOM_SLICE: *more}}]
  - - uuid: <c>
      inventories: {CUSTOM_N: {total: 1, consumes: [{provider: <kinds>, resource_class: CUSTOM_A, amount: 1}]}}
  - [{uuid: <more>, inventories: {CUSTOM_SLICE: *more}}]
  # Providers without such an inventory, unknown ones, and ones of another tree.
  - [{uuid: <kinds>, inventories: {CUSTOM_A: {total: 4, consumes: [{provider: <a>, resource_class: CUSTOM_SLICE, amount: 1}]}, CUSTOM_B: {total: 4, consumes: [{provider: <slices>, resource_class: CUSTOM_SLICE, amount: 1}, {provider: <d>, resource_class: CUSTOM_SLICE, amount: 1}]}}}]
  - [{uuid: <kinds>, inventories: {CUSTOM_A: {total: 4, consumes: [{provider: <more>, resource_class: CUSTOM_SLICE, amount: 1}, {provider: <nobody>, resource_class: CUSTOM_SLICE, amount: 1}]}}}, {uuid: <more>, inventories: {}}]
  - [{uuid: <a>, inventories: {CUSTOM_N: *slices}}]
  # All of the card goes, moves, or consumes something else.
  - [{uuid: <slices>, inventories: {}}, {uuid: <kinds>, inventories: {}}]
  - [{uuid: <slices>, parent_provider_uuid: <b>}, {uuid: <kinds>, parent_provider_uuid: <slices>}]
  - [{uuid: <kinds>, inventories: {CUSTOM_A: *more, CUSTOM_B: *more}}, {uuid: <slices>, inventories: {}}]

# Entries, each with a mistake of its own or none.
entries:
  - {name: nobody}
  - {uuid: <x>}
  - {uuid: <y>, name: b}
  - {uuid: <a>, generation: 99}
  - {uuid: <b>, parent_provider_uuid: <nothing>}
  - {uuid: <slices>, traits: [NO_SUCH]}
  - {uuid: <c>, inventories: {NO_SUCH: {total: 1}}}
  - {uuid: <c>}
  - {uuid: <a>, parent_provider_uuid: <a>}
  - {uuid: <c>, inventories: {VCPU: {total: 1, reserved: 1}}}
  - {uuid: <d>, inventories: {}}
  - {uuid: <v>, name: v, parent_provider_uuid: <v>}
""",
    )
)
ENTRIES = TABLE["entries"]
CASES = [*TABLE["cases"], ENTRIES[:8], ENTRIES[8:], *([entry] for entry in ENTRIES)]


@pytest.mark.parametrize("entries", CASES, ids=range(len(CASES)))
def test_errors_of_assumed_entries_are_those_of_a_write(service, entries):
    applied(service, *TABLE["card"])
    for ordered in (entries, entries[::-1]):
        body = {"providers": ordered, "create_names": True, "dry_run": True}
        written = service.post("/treeclaim/providers", json=body)
        body = {"alternatives": ["resources=VCPU:1"], "given": {"providers": ordered}}
        response = service.post("/treeclaim/candidates", json=body)
        details = [
            [(error["detail"], error["code"], error.get("conflict")) for error in errors]
            for errors in (answer.json().get("errors", ()) for answer in (written, response))
        ]
        assert (response.status_code, details[1]) == (written.status_code, details[0])
