# SPDX-License-Identifier: Apache-2.0
"""The whole contents of an endpoint: read in bulk, or one by one without the extension, and compared."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from treeclaim.client.aggregates import read_aggregate_names
from treeclaim.client.client import Client, amounts_by_provider
from treeclaim.client.provider_batches import Action, PlannedChange
from treeclaim.client.session import Progress, run_parallel
from treeclaim.client.states import ProviderState, make_state
from treeclaim.model.parts import CONDITIONS, PARTS

Amounts = Mapping[str, Mapping[str, int]]
"""Amounts by provider and class."""

_TERMS = ("until", "returns", "projects", "note")
"""Terms of a hold in a claim (contract page 100, section 1)."""

Result = TypeVar("Result")

_THREADS = 4
"""Concurrent requests without bulk reads."""


@dataclass(frozen=True, slots=True)
class ConsumerContents:
    """A consumer with its allocations.

    Attributes:
        held: Allocated amounts by provider and class.
        project, user, kind: Ids and the consumer type; None without allocations.
        hold: Terms of a hold, in the form of a claim; None for other consumers.
        drawn_from: Drawn amounts by hold, provider and class.
        places: Uuids of the providers of its amounts, including those drawn from it.
    """

    uuid: str
    held: Amounts
    project: str | None
    user: str | None
    kind: str | None
    hold: Mapping[str, Any] | None = None
    drawn_from: Mapping[str, Amounts] = field(default_factory=dict)
    places: frozenset[str] = frozenset()

    @classmethod
    def read(cls, uuid: str, document: Mapping[str, Any]) -> "ConsumerContents":
        """Convert the document of a consumer's allocations."""
        terms, held_amounts = document.get("hold"), amounts_by_provider(document["allocations"])
        return cls(
            uuid=uuid,
            held=held_amounts,
            project=document.get("project_id"),
            user=document.get("user_id"),
            kind=document.get("consumer_type"),
            hold=terms and {name: terms[name] for name in _TERMS},
            drawn_from=document.get("drawn_from", {}),
            places=frozenset(held_amounts).union((terms or {}).get("drawn", {})),
        )

    @property
    def title(self) -> str:
        """The consumer for messages."""
        return f"{'consumer' if self.hold is None else 'hold'} {self.uuid}"


@dataclass(slots=True)
class Contents:
    """The contents of an endpoint.

    Attributes:
        is_extended: Whether the endpoint has the extension; without it, the last four are empty.
        consumers: Consumers with allocations, and fully drawn holds, by uuid.
        aggregates: Names by aggregate uuid.
        conditions: Conditions by provider uuid and key.
        mixes: Requests of mixes by name.
        requests: Stored requests by consumer uuid.
    """

    is_extended: bool
    traits: frozenset[str]
    classes: frozenset[str]
    providers: dict[str, ProviderState] = field(default_factory=dict)
    consumers: dict[str, ConsumerContents] = field(default_factory=dict)
    aggregates: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    mixes: Mapping[str, Any] = field(default_factory=dict)
    requests: dict[str, Sequence[str] | None] = field(default_factory=dict)


def read_contents(client: Client, progress: Progress, *, title: str) -> Contents:
    """Read the contents of an endpoint; `title` precedes the names of stages."""
    is_extended = client.extension is not None
    traits = frozenset(client.get("/traits")["traits"])
    classes = frozenset(row["name"] for row in client.get("/resource_classes")["resource_classes"])
    contents = Contents(is_extended, traits, classes)

    def report(kind: str, done_count: int, total: int) -> None:
        progress(f"{title}: {kind}", done_count, total)

    if is_extended:
        _read_in_bulk(client, contents, report)
    else:
        _read_singly(client, contents, report)
    return contents


def _read_singly(client: Client, contents: Contents, progress: Progress) -> None:
    parts = [part for part in PARTS if not part.is_extension]

    def read_provider(row: Mapping[str, Any]) -> tuple[ProviderState, Iterable[str]]:
        uuid = row["uuid"]
        documents = {part.name: client.get(part.path(uuid))[part.name] for part in parts}
        path = f"/resource_providers/{uuid}/allocations"
        return make_state({**row, **documents}, parts), client.get(path)["allocations"]

    def read_consumer(uuid: str) -> ConsumerContents:
        return ConsumerContents.read(uuid, client.get(f"/allocations/{uuid}"))

    def read_all(kind: str, read: Callable[[Any], Result], items: Sequence[Any]) -> list[Result]:
        return run_parallel(read, items, threads=_THREADS, progress=partial(progress, kind))

    rows = read_all("providers", read_provider, client.providers())
    contents.providers = {provider.uuid: provider for provider, _ in rows}
    uuids = {uuid for _, consumers in rows for uuid in consumers}
    consumers = read_all("consumers", read_consumer, sorted(uuids))
    # Consumers without allocations were released meanwhile.
    contents.consumers = {consumer.uuid: consumer for consumer in consumers if consumer.held}


def _read_in_bulk(client: Client, contents: Contents, progress: Progress) -> None:
    def report_rows(kind: str, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for number, row in enumerate(rows, 1):
            yield row
            progress(kind, number, number)

    include = [*(part.name for part in PARTS), CONDITIONS.name]
    rows = list(report_rows("providers", client.provider_states(include)))
    contents.providers = {row["uuid"]: make_state(row, PARTS) for row in rows}
    contents.conditions = {
        (row["uuid"], key): members
        for row in rows
        for key, members in row[CONDITIONS.name].items()
    }
    mixes = client.get("/treeclaim/mixes")["mixes"]
    contents.mixes = {name: mix["requests"] for name, mix in mixes.items()}
    contents.aggregates = read_aggregate_names(client) or {}
    holds = client.rows("/treeclaim/holds", "holds")
    consumers = client.rows("/treeclaim/allocations", "consumers", include="requests")
    for row in chain(report_rows("holds", holds), report_rows("consumers", consumers)):
        contents.consumers[row["uuid"]] = ConsumerContents.read(row["uuid"], row)
        contents.requests[row["uuid"]] = row.get("request")
    contents.consumers = dict(sorted(contents.consumers.items()))


Key = TypeVar("Key")


def find_differing_items(source: Mapping[Key, Any], target: Mapping[Key, Any]) -> dict[Key, Any]:
    """Return the items of the source that are missing or different in the target."""
    return {key: value for key, value in source.items() if target.get(key) != value}


def find_differing_consumers(source: Contents, target: Contents) -> dict[str, list[str]]:
    """Return the differing members of each consumer of the source, by uuid."""
    # A source without the extension has no holds.
    compared_members = ["held", *(["hold", "drawn_from"] if source.is_extended else [])]
    differences: dict[str, list[str]] = {}
    for uuid, consumer in source.consumers.items():
        target_consumer = target.consumers.get(uuid)
        if target_consumer is None or not (target_consumer.held or target_consumer.hold):
            differences[uuid] = ["existence"]
            continue
        # A fully drawn hold has no owner in its document.
        owner = [
            name
            for name in ("project", "user", "kind")
            if None not in (getattr(consumer, name), getattr(target_consumer, name))
        ]
        differing_names = [
            name
            for name in (*compared_members, *owner)
            if getattr(consumer, name) != getattr(target_consumer, name)
        ]
        if differing_names:
            differences[uuid] = differing_names
    return differences


def find_differences(source: Contents, target: Contents) -> Iterator[str]:
    """Yield a text for each object that is missing or different in the target.

    Objects of the target alone do not count, except for consumers of providers that both have.
    """
    yield from (f"trait {name} is missing" for name in sorted(source.traits - target.traits))
    classes = sorted(source.classes - target.classes)
    yield from (f"resource class {name} is missing" for name in classes)
    for aggregate in sorted(find_differing_items(source.aggregates, target.aggregates)):
        yield f"aggregate {aggregate}: name differs"
    for uuid, provider in source.providers.items():
        change = PlannedChange(target.providers.get(uuid), provider)
        members = ["existence"] if change.action is Action.CREATE else change.changed_members
        yield from (f"provider {uuid} ({provider.name}): {member} differs" for member in members)
    for uuid, key in find_differing_items(source.conditions, target.conditions):
        yield f"provider {uuid} ({source.providers[uuid].name}): condition {key} differs"
    for mix in sorted(find_differing_items(source.mixes, target.mixes)):
        yield f"mix {mix} differs"
    for uuid, members in find_differing_consumers(source, target).items():
        yield from (f"{source.consumers[uuid].title}: {member} differs" for member in members)
    for uuid in find_differing_items(source.requests, target.requests):
        yield f"consumer {uuid}: request differs"
    for uuid in sorted(target.consumers.keys() - source.consumers.keys()):
        if not source.providers.keys().isdisjoint(target.consumers[uuid].places):
            yield f"consumer {uuid} has allocations at the target only"
