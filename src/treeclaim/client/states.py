# SPDX-License-Identifier: Apache-2.0
"""A provider as an endpoint has it, or as it is to be; how it is read, compared and sent."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from treeclaim.client.client import Client
from treeclaim.client.errors import UnsupportedFeatureError
from treeclaim.client.reports import Reports, in_batches
from treeclaim.client.transport import THREADS, in_parallel
from treeclaim.client.versions import LATEST_MINOR, Need
from treeclaim.model.microversions import ExtensionFeature
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

    @property
    def without_parts(self) -> "State":
        """Return the state right after the provider was created, before anything else was written."""
        return State(self.uuid, self.name, self.parent)


Some = TypeVar("Some", bound=ProviderPart[Any])


def need_of(part: ProviderPart[Any]) -> Need:
    """Return what a server must have for a part."""
    if isinstance(part.since, ExtensionFeature):
        return Need(part.name, LATEST_MINOR, part.since)
    return Need(part.name, 0 if part.since is None else part.since)


def parts_at(client: Client, parts: Iterable[Some]) -> list[Some]:
    """Return those of some parts that an endpoint has."""
    return [part for part in parts if client.versions.has(need_of(part))]


def read_parts(client: Client, uuid: str, parts: Iterable[ProviderPart[Any]]) -> dict[str, Any]:
    """Read parts of a provider, one by one; return their documents by name.

    Raises:
        ClientError: if a call fails.
    """
    return {part.name: call_part(client, "GET", uuid, part)[part.name] for part in parts}


def call_part(
    client: Client, method: str, uuid: str, part: ProviderPart[Any], json: Any = None
) -> Any:
    """Call a part's own URL at a provider; return the document of the answer.

    Raises:
        ClientError: if the call fails.
    """
    return client.call(method, part.path(uuid), json=json, extended=part.is_extension).json()


def capacity_of(fields: Mapping[str, Any]) -> int:
    """Return how much of an inventory can be allocated (contract page 30, section 1)."""
    return int((fields["total"] - fields["reserved"]) * fields["allocation_ratio"])


def values_in(row: Mapping[str, Any], parts: Iterable[ProviderPart[Any]]) -> Values:
    """Return the values of parts that a list has beside a provider."""
    return {part.name: part.read(row[part.name]) for part in parts}


def state_of(row: Mapping[str, Any], parts: Iterable[ProviderPart[Any]]) -> State:
    """Return a provider as a list of them has it, with some parts."""
    return State(
        row["uuid"],
        row["name"],
        row.get("parent_provider_uuid"),
        row["generation"],
        values_in(row, parts),
    )


def read_state(
    client: Client, row: Mapping[str, Any], parts: Iterable[ProviderPart[Any]]
) -> State:
    """Read parts of a provider, one by one.

    Args:
        client: The endpoint.
        row: The provider as a list of them has it. Its generation was read first, so whatever
            changes after that makes a write with it a conflict.
        parts: Which are read.

    Raises:
        ClientError: if a call fails.
    """
    parts = tuple(parts)
    return state_of({**row, **read_parts(client, row["uuid"], parts)}, parts)


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


def rows_in_bulk(
    client: Client,
    uuids: Sequence[str],
    include: Sequence[str],
    *,
    threads: int = THREADS,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Mapping[str, Mapping[str, Any]] | None:
    """Read providers by some hundred in a call, each as it is at one moment.

    Args:
        client: The endpoint.
        uuids: Which.
        include: What of them, as GET /treeclaim/providers has it.
        threads: How many calls are made at once.
        progress: Told how many are read, and how many there are.

    Returns:
        Those that exist, by uuid; None if the endpoint has no such call.

    Raises:
        ClientError: if the endpoint fails.
    """
    try:
        reports = Reports(client)
    except UnsupportedFeatureError:
        return None
    pieces = list(in_batches(uuids, UUIDS_AT_ONCE))

    def read(some: Sequence[str]) -> list[dict[str, Any]]:
        return list(reports.providers(include=include, uuid=f"in:{','.join(some)}"))

    def told(done: int, total: int) -> None:
        progress(min(done * UUIDS_AT_ONCE, len(uuids)) if done < total else len(uuids), len(uuids))

    answers = in_parallel(read, pieces, threads=threads, progress=told)
    return {row["uuid"]: row for rows in answers for row in rows}
