# SPDX-License-Identifier: Apache-2.0
"""Entries of `provider_summaries` as ready-made JSON (contract page 90, section 5.2)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from treeclaim.model.inventory import Consumes, Inventory
from treeclaim.model.provider import Provider
from treeclaim.model.request import BodyForm


@dataclass(frozen=True, slots=True)
class InventoryView:
    """One inventory of a provider as clients see it.

    Attributes:
        resource_class: Name of the class.
        inventory: The amounts.
        used: Units allocated, and those consumed.
        modified_at: Last update (or creation), in seconds since the epoch.
        consumes: What a unit consumes elsewhere, in the order of clients.
    """

    resource_class: str
    inventory: Inventory
    used: int
    modified_at: float
    consumes: tuple[Consumes, ...] = ()


_FULL = BodyForm()
_ORJSON_BITS = 64


def summary_fragment(
    provider: Provider,
    inventories: Sequence[InventoryView],
    traits: Sequence[str],
    form: BodyForm = _FULL,
    requested: Collection[str] = (),
) -> bytes:
    """Write one member of `provider_summaries`, key included.

    Args:
        provider: The provider.
        inventories: Its inventories in order of class id.
        traits: Its traits in catalogue order.
        form: What the microversion shows.
        requested: Names of the classes to show where the form does not show all.
    """
    entry: dict[str, Any] = {
        "resources": {
            inventory.resource_class: {
                "capacity": writable(inventory.inventory.whole_capacity),
                "used": inventory.used,
            }
            for inventory in inventories
            if form.all_classes or inventory.resource_class in requested
        }
    }
    if form.traits:
        entry["traits"] = traits
    if form.nested:
        entry["parent_provider_uuid"] = provider.parent_uuid
        entry["root_provider_uuid"] = provider.root_uuid
    return b'"%s":%s' % (provider.uuid.encode(), orjson.dumps(entry))


def writable(number: int) -> int | orjson.Fragment:
    """Let orjson write a number of more than 64 bits, which a capacity may be."""
    return number if number.bit_length() < _ORJSON_BITS else orjson.Fragment(str(number))
