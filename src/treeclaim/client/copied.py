# SPDX-License-Identifier: Apache-2.0
"""Reads all that an endpoint holds, in several threads, and compares two endpoints."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from treeclaim.client.aggregates import AggregateNames
from treeclaim.client.client import Client
from treeclaim.client.reports import BULK, Reports
from treeclaim.client.requests import bodies
from treeclaim.client.states import State, changed_parts, parts_at, read_state, state_of
from treeclaim.client.transport import Item, Result, in_parallel
from treeclaim.client.versions import Need
from treeclaim.model.microversions import Feature
from treeclaim.model.parts import PARTS

LOWEST_MINOR = Feature.NESTED_PROVIDERS
"""Lowest microversion 1.N whose answers have everything that matters except the types of consumers."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """What a consumer holds.

    Attributes:
        uuid: UUID of the consumer.
        held: Amounts by provider and class.
        project, user: Ids; None where nothing is held.
        kind: Consumer type, None where the endpoint is too old to tell.
    """

    uuid: str
    held: Mapping[str, Mapping[str, int]]
    project: str | None
    user: str | None
    kind: str | None


@dataclass(slots=True)
class Contents:
    """What an endpoint holds.

    Attributes:
        providers: By uuid, parents before their children.
        consumers: By uuid, those that hold something.
        traits, classes: All names.
        aggregates: Names of aggregates; None where the endpoint keeps none.
    """

    providers: dict[str, State] = field(default_factory=dict)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    aggregates: AggregateNames | None = None


def read_contents(
    client: Client,
    progress: Progress,
    *,
    title: str,
    threads: int,
    only: Iterable[str] | None = None,
) -> Contents:
    """Read what an endpoint holds.

    Args:
        client: The endpoint.
        progress: Told how far the reading is.
        title: The title of what is read, for the progress bar.
        threads: How many requests are made at once.
        only: Uuids of the providers that matter, None for all.

    Raises:
        UnsupportedFeatureError: if the endpoint is too old.
        ClientError: if a call fails.
    """
    client.versions.require(Need("copying", LOWEST_MINOR))
    wanted = None if only is None else set(only)
    if client.versions.has(BULK):
        contents = _read_in_bulk(client, progress, title, wanted)
        contents.aggregates = AggregateNames.kept_by(client)
        return contents
    return _read_singly(client, progress, title, threads, wanted)


def _read_singly(
    client: Client, progress: Progress, title: str, threads: int, only: AbstractSet[str] | None
) -> Contents:
    """Read provider by provider and consumer by consumer."""
    listed = [row for row in client.providers() if only is None or row["uuid"] in only]

    def each(what: str, items: Sequence[Item], read: Callable[[Item], Result]) -> list[Result]:
        told = partial(progress, f"{title}: {what}")
        return in_parallel(read, items, threads=threads, progress=told)

    contents = Contents(
        traits=frozenset(client.get("/traits")["traits"]),
        classes=frozenset(_class_names(client)),
    )
    holders: set[str] = set()
    ordered = parents_first(listed)
    for provider, held_by in each("providers", ordered, lambda row: _provider(client, row)):
        contents.providers[provider.uuid] = provider
        holders |= held_by
    for consumer in each("consumers", sorted(holders), lambda uuid: read_consumer(client, uuid)):
        # It may have ended since.
        if consumer.held:
            contents.consumers[consumer.uuid] = consumer
    return contents


def _read_in_bulk(
    client: Client, progress: Progress, title: str, only: AbstractSet[str] | None
) -> Contents:
    """Read page by page, with everything."""
    reports, parts = Reports(client), parts_at(client, PARTS)
    rows = []
    for row in reports.providers(include=[part.name for part in parts]):
        if only is None or row["uuid"] in only:
            rows.append(row)
            progress(f"{title}: providers", len(rows), len(rows))
    contents = Contents(
        providers={row["uuid"]: state_of(row, parts) for row in parents_first(rows)},
        traits=frozenset(client.get("/traits")["traits"]),
        classes=frozenset(_class_names(client)),
    )
    for row in reports.consumers():
        consumer = _consumer(row["uuid"], row, is_typed=True)
        if not contents.providers.keys().isdisjoint(consumer.held):
            contents.consumers[consumer.uuid] = consumer
            progress(f"{title}: consumers", len(contents.consumers), len(contents.consumers))
    contents.consumers = dict(sorted(contents.consumers.items()))
    return contents


def parents_first(listed: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return listed providers with parents before children."""
    waiting = {row["uuid"]: row for row in listed}
    ordered: list[Mapping[str, Any]] = []
    while waiting:
        ready = [row for row in waiting.values() if row["parent_provider_uuid"] not in waiting]
        # Without any there is a circle, which no service allows.
        ordered += [waiting.pop(row["uuid"]) for row in ready or list(waiting.values())]
    return ordered


def _class_names(client: Client) -> list[str]:
    return [entry["name"] for entry in client.get("/resource_classes")["resource_classes"]]


def _provider(client: Client, listed: Mapping[str, Any]) -> tuple[State, set[str]]:
    """Read a provider, and who holds something of it."""
    holders = client.get(f"/resource_providers/{listed['uuid']}/allocations")["allocations"]
    return read_state(client, listed, parts_at(client, PARTS)), set(holders)


def read_consumer(client: Client, uuid: str) -> Consumer:
    """Read what a consumer holds.

    Raises:
        ClientError: if the call fails.
    """
    answer = client.get(f"/allocations/{uuid}")
    return _consumer(uuid, answer, is_typed=client.versions.has_feature(Feature.CONSUMER_TYPES))


def _consumer(uuid: str, answer: Mapping[str, Any], *, is_typed: bool) -> Consumer:
    return Consumer(
        uuid=uuid,
        held=bodies.by_provider(answer["allocations"]),
        project=answer.get("project_id"),
        user=answer.get("user_id"),
        kind=answer.get("consumer_type") if is_typed else None,
    )


def provider_differences(source: State, target: State | None) -> list[str]:
    """Return what of a provider differs; existence counts as a part."""
    if target is None:
        return ["existence"]
    pairs = (("name", source.name, target.name), ("parent", source.parent, target.parent))
    return [
        *(what for what, ours, theirs in pairs if ours != theirs),
        *(part.name for part in changed_parts(target, source)),
    ]


def consumer_differences(source: Consumer, target: Consumer | None) -> list[str]:
    """Return the parts in which a consumer differs; a part unknown to one side is not a difference."""
    if target is None or not target.held:
        return ["existence"]
    parts = [] if source.held == target.held else ["held"]
    for part in ("project", "user", "kind"):
        pair = getattr(source, part), getattr(target, part)
        if None not in pair and pair[0] != pair[1]:
            parts.append(part)
    return parts


def names_to_copy(source: Contents, target: Contents) -> dict[str, str | None]:
    """Return the names of aggregates that the target lacks or has different, if it keeps any."""
    if source.aggregates is None or target.aggregates is None:
        return {}
    return target.aggregates.changes_to(source.aggregates.names)


def differences(source: Contents, target: Contents) -> list[str]:
    """Return, in words, all that the target lacks or has different.

    What only the target has does not count, except for consumers of providers that both have.
    """
    lines = [
        f"{kind} {name} is missing"
        for kind, ours, theirs in (
            ("trait", source.traits, target.traits),
            ("resource class", source.classes, target.classes),
        )
        for name in sorted(ours - theirs)
    ]
    lines += [f"aggregate {uuid}: name differs" for uuid in sorted(names_to_copy(source, target))]
    for uuid, provider in source.providers.items():
        parts = provider_differences(provider, target.providers.get(uuid))
        lines += [f"provider {uuid} ({provider.name}): {part} differs" for part in parts]
    for uuid, consumer in source.consumers.items():
        parts = consumer_differences(consumer, target.consumers.get(uuid))
        lines += [f"consumer {uuid}: {part} differs" for part in parts]
    surplus = sorted(target.consumers.keys() - source.consumers.keys())
    return lines + [f"consumer {uuid} holds something at the target only" for uuid in surplus]
