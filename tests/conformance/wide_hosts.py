# SPDX-License-Identifier: Apache-2.0
"""Worlds of hosts with many alike children.

Contract page 90, section 6. The ids are made from the place of a provider, so
that suites can name them: host `h` is `aaaaaaaa-0000-4000-8000-0000000000hh`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import httpx

from tests.conformance.services import FreshService

UNITS = "CUSTOM_UNIT"


def host_uuid(number: int) -> str:
    """The uuid of a host."""
    return f"aaaaaaaa-0000-4000-8000-{number:012d}"


def child_uuid(host: int, number: int) -> str:
    """The uuid of a child of a host."""
    return f"bbbbbbbb-0000-4000-8000-{host:06d}{number:06d}"


def create(client: httpx.Client, uuid: str, name: str, parent: str | None) -> None:
    """Make a provider."""
    body = {"uuid": uuid, "name": name, "parent_provider_uuid": parent}
    client.post("/resource_providers", json=body).raise_for_status()


def stock(client: httpx.Client, uuid: str, resource_class: str, total: int) -> None:
    """Give a new provider an inventory."""
    body = {"resource_provider_generation": 0, "inventories": {resource_class: {"total": total}}}
    client.put(f"/resource_providers/{uuid}/inventories", json=body).raise_for_status()


def plant(client: httpx.Client, host: int, children: int, resource_class: str, total: int) -> None:
    """Create one host with VCPU, and children that offer `total` of a class each."""
    create(client, host_uuid(host), f"host {host}", None)
    stock(client, host_uuid(host), "VCPU", 8)
    for number in range(1, children + 1):
        uuid = child_uuid(host, number)
        create(client, uuid, f"child {host}-{number}", host_uuid(host))
        stock(client, uuid, resource_class, total)


def entries_of(host: int, children: int, resource_class: str, total: int) -> list[dict[str, Any]]:
    """Return the same host as entries of a bulk write, which only Treeclaim has."""
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
        with self.client() as client:
            for name in (UNITS, "CUSTOM_SINGLE"):
                client.put(f"/resource_classes/{name}").raise_for_status()
            for host in (1, 2):
                plant(client, host, 8, UNITS, 8)
            plant(client, 3, 8, "CUSTOM_SINGLE", 1)


class OneUnitChildren(FreshService):
    """Pairs of hosts with 8, 21, 32, 48 and 64 children of one unit each.

    The children of hosts 21 and 121 offer `CUSTOM_UNIT_21`, and so on. Only
    in process: an enumeration of the full product would never end.
    """

    only_in_process: ClassVar[bool] = True

    def prepare(self) -> None:
        """Make the hosts."""
        sizes = (8, 21, 32, 48, 64)
        entries = [
            entry
            for size in sizes
            for host in (size, size + 100)
            for entry in entries_of(host, size, f"{UNITS}_{size}", 1)
        ]
        version = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
        with self.client() as client:
            for size in sizes:
                client.put(f"/resource_classes/{UNITS}_{size}").raise_for_status()
            body = {"providers": entries}
            client.post("/treeclaim/providers", json=body, headers=version).raise_for_status()
