# SPDX-License-Identifier: Apache-2.0
"""Reads all that an endpoint holds, in several threads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from treeclaim.client.aggregates import AggregateNames
from treeclaim.client.client import Client
from treeclaim.client.reports import BULK, CONDITIONS_NEED, PLANNING, Reports
from treeclaim.client.requests import bodies
from treeclaim.client.requests.placing import HOLDS, Hold
from treeclaim.client.states import State, parts_at, read_state, state_of
from treeclaim.client.transport import Item, Result, in_parallel
from treeclaim.client.versions import Need
from treeclaim.model.microversions import Feature
from treeclaim.model.parts import CONDITIONS, PARTS

LOWEST_MINOR = Feature.NESTED_PROVIDERS
"""Lowest microversion 1.N whose answers have everything that matters except the types of consumers."""

Amounts = Mapping[str, Mapping[str, int]]
"""Amounts by provider and class."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer with its allocations.

    Attributes:
        uuid: UUID of the consumer.
        held: Amounts by provider and class.
        project, user: Ids; None where nothing is held.
        kind: Consumer type, None where the endpoint is too old to tell.
        hold: Terms of a hold; None for other consumers.
        drawn_from: Amounts by hold, provider and class.
        request: The kept request; None without one.
    """

    uuid: str
    held: Amounts
    project: str | None
    user: str | None
    kind: str | None
    hold: Hold | None = None
    drawn_from: Mapping[str, Amounts] = field(default_factory=dict)
    request: Sequence[str] | None = None


@dataclass(slots=True)
class Contents:
    """What an endpoint holds.

    Attributes:
        providers: By uuid, parents before their children.
        consumers: By uuid, those that hold something, and holds of which everything is drawn.
        traits, classes: All names.
        aggregates: Names of aggregates; None where the endpoint keeps none.
        conditions: Conditions by key, by uuid of a provider; None where the endpoint has none.
        mixes: Mixes by name; None where the endpoint has none.
        has_holds: Whether the endpoint has holds and kept requests.
    """

    providers: dict[str, State] = field(default_factory=dict)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    aggregates: AggregateNames | None = None
    conditions: Mapping[str, Mapping[str, Any]] | None = None
    mixes: Mapping[str, Mapping[str, Any]] | None = None
    has_holds: bool = False


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
    has_conditions = client.versions.has(CONDITIONS_NEED)
    has_holds = client.versions.has(HOLDS)
    include = [part.name for part in parts] + [CONDITIONS.name] * has_conditions
    rows = []
    for row in reports.providers(include=include):
        if only is None or row["uuid"] in only:
            rows.append(row)
            progress(f"{title}: providers", len(rows), len(rows))
    contents = Contents(
        providers={row["uuid"]: state_of(row, parts) for row in parents_first(rows)},
        traits=frozenset(client.get("/traits")["traits"]),
        classes=frozenset(_class_names(client)),
        conditions={row["uuid"]: row[CONDITIONS.name] for row in rows} if has_conditions else None,
        mixes=reports.mixes() if client.versions.has(PLANNING) else None,
        has_holds=has_holds,
    )
    listed = chain(
        reports.holds() if has_holds else (),
        reports.consumers(**({"include": "requests"} if has_holds else {})),
    )
    for row in listed:
        consumer = _consumer(row["uuid"], row, is_typed=True)
        places = consumer.held.keys() | (row.get("hold") or {}).get("drawn", {}).keys()
        if not contents.providers.keys().isdisjoint(places):
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
    terms = answer.get("hold")
    return Consumer(
        uuid=uuid,
        held=bodies.by_provider(answer["allocations"]),
        project=answer.get("project_id"),
        user=answer.get("user_id"),
        kind=answer.get("consumer_type") if is_typed else None,
        hold=None if terms is None else Hold.read(terms),
        drawn_from=answer.get("drawn_from", {}),
        request=answer.get("request"),
    )
