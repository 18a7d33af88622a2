# SPDX-License-Identifier: Apache-2.0
"""What decides about a provider that an explanation names: its limits and its traits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from treeclaim.client import Client, ClientError
from treeclaim.client.parallel import in_parallel

_UNLIMITED = 2_147_483_647


@dataclass(frozen=True, slots=True)
class Limits:
    """What a provider has and allows.

    Attributes:
        inventories: All fields by resource class.
        traits: Names.
        aggregates: Uuids.
    """

    inventories: Mapping[str, Mapping[str, Any]]
    traits: frozenset[str]
    aggregates: frozenset[str]


def limits_of(client: Client, told: Mapping[str, Any]) -> dict[str, Limits]:
    """Read the limits of all providers that an explanation names, by uuid."""
    named = sorted(
        {
            provider["uuid"]
            for tree in told["nearest"]
            for blocked in tree["blocked_by"]
            for provider in blocked["providers"]
        }
    )

    def read(uuid: str) -> Limits | None:
        path = f"/resource_providers/{uuid}"
        try:
            return Limits(
                client.get(f"{path}/inventories")["inventories"],
                frozenset(client.get(f"{path}/traits")["traits"]),
                frozenset(client.get(f"{path}/aggregates")["aggregates"]),
            )
        except ClientError as error:
            # It may have gone since.
            if error.status is None:
                raise
            return None

    pairs = zip(named, in_parallel(read, named), strict=True)
    return {uuid: limits for uuid, limits in pairs if limits is not None}


def limits_in_words(inventory: Mapping[str, Any]) -> str:
    """Return what of an inventory decides how much can be taken at once."""
    words = [f"total {inventory['total']}"]
    if inventory["reserved"]:
        words.append(f"reserved {inventory['reserved']}")
    if inventory["allocation_ratio"] != 1.0:
        words.append(f"ratio {inventory['allocation_ratio']}")
    words.append(f"min_unit {inventory['min_unit']}")
    if inventory["max_unit"] != _UNLIMITED:
        words.append(f"max_unit {inventory['max_unit']}")
    words.append(f"step_size {inventory['step_size']}")
    return ", ".join(words)


def nearest_amount(inventory: Mapping[str, Any], free: int, requested: int) -> int | None:
    """Return the amount nearest to what was requested that an inventory would give.

    Args:
        inventory: Its fields.
        free: How much is free.
        requested: How much was asked for.

    Returns:
        The amount, the lower of two that are equally near; None if it gives none.
    """
    step: int = inventory["step_size"]
    most: int = min(inventory["max_unit"], free) // step * step
    least: int = -(-max(inventory["min_unit"], 1) // step) * step
    if least > most:
        return None
    below = min(max(requested // step * step, least), most)
    above = min(max(below + step, least), most)
    return above if above - requested < requested - below else below
