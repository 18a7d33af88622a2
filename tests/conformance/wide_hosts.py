# SPDX-License-Identifier: Apache-2.0
"""Worlds of hosts with many alike children.

Contract page 90, section 6. The ids are made from the place of a provider, so
that suites can name them: host `h` is `aaaaaaaa-0000-4000-8000-0000000000hh`.
"""

from __future__ import annotations

from typing import Any

import httpx

from tests.conformance.services import FreshService

UNITS = "CUSTOM_UNIT"


def host_uuid(number: int) -> str:
    """The uuid of a host."""
    return f"aaaaaaaa-0000-4000-8000-{number:012d}"


def child_uuid(host: int, number: int) -> str:
    """The uuid of a child of a host."""
    return f"bbbbbbbb-0000-4000-8000-{host:06d}{number:06d}"


EXTENDED = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}


def plant(client: httpx.Client, hosts: list[list[dict[str, Any]]]) -> None:
    """Create hosts with their children."""
    body = {"providers": [entry for host in hosts for entry in host], "create_names": True}
    client.post("/treeclaim/providers", json=body, headers=EXTENDED).raise_for_status()


def entries_of(host: int, children: int, resource_class: str, total: int) -> list[dict[str, Any]]:
    """Return one host with VCPU, and children that offer `total` of a class each, as entries of a bulk write."""
    root = {
        "uuid": host_uuid(host),
        "name": f"host {host}",
        "inventories": {"VCPU": {"total": 8}},
    }
    below = [
        {
            "uuid": child_uuid(host, number),
            "name": f"child {host}-{number}",
            "parent_provider_uuid": host_uuid(host),
            "inventories": {resource_class: {"total": total}},
        }
        for number in range(1, children + 1)
    ]
    return [root, *below]


class EightByEight(FreshService):
    """Two hosts of eight children with eight units each, and a third with one unit each.

    The children of host 3 offer `CUSTOM_SINGLE`, those of hosts 1 and 2 `CUSTOM_UNIT`.
    """

    def prepare(self) -> None:
        """Make the hosts."""
        hosts = [entries_of(1, 8, UNITS, 8), entries_of(2, 8, UNITS, 8)]
        with self.client() as client:
            plant(client, [*hosts, entries_of(3, 8, "CUSTOM_SINGLE", 1)])


class OneUnitChildren(FreshService):
    """Pairs of hosts with 8, 21, 32, 48 and 64 children of one unit each.

    The children of hosts 21 and 121 offer `CUSTOM_UNIT_21`, and so on. An
    enumeration of the full product would never end.
    """

    def prepare(self) -> None:
        """Make the hosts."""
        sizes = (8, 21, 32, 48, 64)
        with self.client() as client:
            plant(
                client,
                [
                    entries_of(host, size, f"{UNITS}_{size}", 1)
                    for size in sizes
                    for host in (size, size + 100)
                ],
            )
