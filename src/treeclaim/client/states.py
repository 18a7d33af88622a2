# SPDX-License-Identifier: Apache-2.0
"""A provider as an endpoint has it, or as it is to be; how it is read, compared and sent."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from treeclaim.client.client import Client
from treeclaim.client.session import in_batches, in_parallel
from treeclaim.model.parts import PARTS, ProviderPart, Values

UUIDS_AT_ONCE = 200
"""Providers that are asked for in one URL, of 8 kB then."""


@dataclass(frozen=True, slots=True)
class State:
    """The present or the wanted state of a provider.

    Attributes:
        uuid, name: The provider's UUID and name.
        parent: Uuid of the parent, None for a root.
        generation: That the service had when this was read.
        values: The values of the parts that were read, or that are to be.
    """

    uuid: str
    name: str
    parent: str | None
    generation: int = 0
    values: Values = field(default_factory=dict)


def capacity_of(fields: Mapping[str, Any]) -> int:
    """Return how much of an inventory can be allocated (contract page 30, section 1)."""
    return int((fields["total"] - fields["reserved"]) * fields["allocation_ratio"])


def state_of(row: Mapping[str, Any], parts: Iterable[ProviderPart[Any]]) -> State:
    """Return a provider as a list of them has it, with some parts."""
    return State(
        row["uuid"],
        row["name"],
        row.get("parent_provider_uuid"),
        row["generation"],
        {part.name: part.read(row[part.name]) for part in parts},
    )


def is_moved(before: State, after: State) -> bool:
    """Tell whether name or parent differ."""
    return (before.name, before.parent) != (after.name, after.parent)


def changed_parts(before: State, after: State) -> list[ProviderPart[Any]]:
    """Return the parts to write."""
    return [
        part
        for part in PARTS
        if (value := part.value_in(after.values)) is not None
        and not part.is_same(part.or_empty(before.values), value)
    ]


def read_rows(
    client: Client,
    uuids: Sequence[str],
    include: Sequence[str],
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> dict[str, dict[str, Any]]:
    """Read providers by some hundred in a call, each as it is at one moment.

    Args:
        client: The endpoint.
        uuids: UUIDs of the providers; those that do not exist are left out.
        include: Parts, as GET /treeclaim/providers has them.
        progress: Called with the number of providers that are read, and the number of all.

    Returns:
        Rows of GET /treeclaim/providers by uuid.
    """
    client.require_extension("reading many providers at once")

    def read(batch: Sequence[str]) -> list[dict[str, Any]]:
        return list(client.provider_states(include, uuid=f"in:{','.join(batch)}"))

    def report(done: int, _: int) -> None:
        progress(min(done * UUIDS_AT_ONCE, len(uuids)), len(uuids))

    batches = list(in_batches(uuids, UUIDS_AT_ONCE))
    pages = in_parallel(read, batches, progress=report)
    return {row["uuid"]: row for rows in pages for row in rows}
