# SPDX-License-Identifier: Apache-2.0
"""Reads everything that an endpoint holds: in bulk, or singly where it has no extension."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from treeclaim.client.aggregates import AggregateNames
from treeclaim.client.claims import amounts_by_provider
from treeclaim.client.client import Client
from treeclaim.client.session import in_parallel
from treeclaim.client.states import State, state_of
from treeclaim.client.topology.tree import count_ancestors
from treeclaim.model.parts import CONDITIONS, PARTS

Amounts = Mapping[str, Mapping[str, int]]
"""Amounts by provider and class."""

_TERMS = ("until", "returns", "projects", "note")
"""Terms of a hold that a claim has, and that its document shows (contract page 100, section 1)."""

Progress = Callable[[str, int, int], None]
"""Called with the name of a stage, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer with its allocations.

    Attributes:
        uuid: UUID of the consumer.
        held: Amounts by provider and class.
        project, user, kind: Ids and the consumer type; None without allocations.
        hold: Terms of a hold, as a claim has them; None for other consumers.
        drawn_from: Amounts by hold, provider and class.
        request: The kept request; None without one.
    """

    uuid: str
    held: Amounts
    project: str | None
    user: str | None
    kind: str | None
    hold: Mapping[str, Any] | None = None
    drawn_from: Mapping[str, Amounts] = field(default_factory=dict)
    request: Sequence[str] | None = None

    @classmethod
    def read(cls, uuid: str, document: Mapping[str, Any]) -> "Consumer":
        """Read the document of a consumer's allocations."""
        terms = document.get("hold")
        return cls(
            uuid=uuid,
            held=amounts_by_provider(document["allocations"]),
            project=document.get("project_id"),
            user=document.get("user_id"),
            kind=document.get("consumer_type"),
            hold=terms and {name: terms[name] for name in _TERMS},
            drawn_from=document.get("drawn_from", {}),
            request=document.get("request"),
        )

    @property
    def title(self) -> str:
        """The consumer in words."""
        return f"{'consumer' if self.hold is None else 'hold'} {self.uuid}"


@dataclass(slots=True)
class Contents:
    """Everything that an endpoint holds.

    Attributes:
        is_extended: Whether the endpoint has the extension; without it, the last three are empty.
        providers: By uuid, parents before their children.
        consumers: By uuid, those with allocations, and holds of which everything is drawn.
        traits, classes: All names.
        aggregates: Names by the uuids of aggregates.
        conditions: Conditions by key, by uuid of a provider.
        mixes: Mixes by name.
    """

    is_extended: bool
    providers: dict[str, State] = field(default_factory=dict)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    aggregates: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    mixes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_contents(
    client: Client,
    progress: Progress,
    *,
    title: str,
    threads: int,
    only: Iterable[str] | None = None,
) -> Contents:
    """Read everything that an endpoint holds.

    Args:
        client: The endpoint.
        progress: Called for each batch of objects.
        title: Begins the names of the stages.
        threads: How many requests are made at once where there are no bulk reads.
        only: Uuids of the providers to read, None for all; consumers without any of them are left out.

    Raises:
        UnsupportedFeatureError: if the endpoint is older than placement 1.39.
        ClientError: if a call fails.
    """
    contents = Contents(client.extension is not None)
    contents.traits = frozenset(client.get("/traits")["traits"])
    rows = client.get("/resource_classes")["resource_classes"]
    contents.classes = frozenset(row["name"] for row in rows)
    chosen_uuids = None if only is None else set(only)

    def report(kind: str, done: int, total: int) -> None:
        progress(f"{title}: {kind}", done, total)

    if contents.is_extended:
        _read_in_bulk(client, contents, report, chosen_uuids)
    else:
        _read_singly(client, contents, report, threads, chosen_uuids)
    return contents


def _read_singly(
    client: Client,
    contents: Contents,
    progress: Progress,
    threads: int,
    only: AbstractSet[str] | None,
) -> None:
    """Read provider by provider and consumer by consumer."""
    parts = [part for part in PARTS if not part.is_extension]

    def read_provider(row: Mapping[str, Any]) -> tuple[State, Iterable[str]]:
        uuid = row["uuid"]
        documents = {part.name: client.get(part.path(uuid))[part.name] for part in parts}
        path = f"/resource_providers/{uuid}/allocations"
        return state_of({**row, **documents}, parts), client.get(path)["allocations"]

    def read_consumer(uuid: str) -> Consumer:
        return Consumer.read(uuid, client.get(f"/allocations/{uuid}"))

    rows = [row for row in client.providers() if only is None or row["uuid"] in only]
    consumers: set[str] = set()
    for provider, holders in in_parallel(
        read_provider,
        _parents_first(rows),
        threads=threads,
        progress=partial(progress, "providers"),
    ):
        contents.providers[provider.uuid] = provider
        consumers.update(holders)
    for consumer in in_parallel(
        read_consumer,
        sorted(consumers),
        threads=threads,
        progress=partial(progress, "consumers"),
    ):
        # It may have ended since.
        if consumer.held:
            contents.consumers[consumer.uuid] = consumer


def _read_in_bulk(
    client: Client,
    contents: Contents,
    progress: Progress,
    only: AbstractSet[str] | None,
) -> None:
    """Read page by page."""

    def count(kind: str, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for number, row in enumerate(rows, 1):
            yield row
            progress(kind, number, number)

    include = [*(part.name for part in PARTS), CONDITIONS.name]
    rows = [
        row
        for row in count("providers", client.provider_states(include))
        if only is None or row["uuid"] in only
    ]
    contents.providers = {row["uuid"]: state_of(row, PARTS) for row in _parents_first(rows)}
    contents.conditions = {row["uuid"]: row[CONDITIONS.name] for row in rows}
    contents.mixes = client.get("/treeclaim/mixes")["mixes"]
    contents.aggregates = AggregateNames.read(client).names
    for listed in (
        count("holds", client.rows("/treeclaim/holds", "holds")),
        count("consumers", client.rows("/treeclaim/allocations", "consumers", include="requests")),
    ):
        for row in listed:
            consumer = Consumer.read(row["uuid"], row)
            places = consumer.held.keys() | (row.get("hold") or {}).get("drawn", {}).keys()
            if not contents.providers.keys().isdisjoint(places):
                contents.consumers[consumer.uuid] = consumer
    contents.consumers = dict(sorted(contents.consumers.items()))


def _parents_first(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    levels = count_ancestors({row["uuid"]: row["parent_provider_uuid"] for row in rows})
    return sorted(rows, key=lambda row: levels[row["uuid"]])
