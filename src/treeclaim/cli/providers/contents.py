# SPDX-License-Identifier: Apache-2.0
"""What providers hold, read for showing: only what is asked for, many at once."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from http import HTTPStatus
from typing import Any

from treeclaim.cli.names import Row
from treeclaim.cli.progress import Report
from treeclaim.client import Client, ClientError
from treeclaim.client.states import capacity_of, read_rows, values_in
from treeclaim.model.parts import INVENTORIES, SHOWN_PARTS, ListedPart, Values

_WHOLE = 100


@dataclass(frozen=True, slots=True)
class HeldPart:
    """What one hold has of an inventory.

    Attributes:
        hold: Its uuid.
        amount: Units.
        project_id: Its project.
        until: When it ends; None for never.
        note: For people; None for none.
    """

    hold: str
    amount: int
    project_id: str
    until: str | None
    note: str | None

    def in_words(self) -> str:
        """Return it as a line."""
        end = "" if self.until is None else f" until {self.until}"
        note = "" if self.note is None else f": {self.note}"
        return f"{self.amount} held for {self.project_id}{end}{note}"


Held = Mapping[str, Mapping[str, Sequence[HeldPart]]]
"""What holds have, by provider uuid and resource class."""


@dataclass(frozen=True, slots=True)
class ConsumingInventory:
    """An inventory that consumes from another one (contract page 102, section 2).

    Attributes:
        provider, resource_class: Names of its provider and class.
        used: Units that it consumes now.
    """

    provider: str
    resource_class: str
    used: int

    def in_words(self) -> str:
        """Return it as a tree shows it."""
        return f"{self.used} consumed by {self.resource_class} of {self.provider}"


@dataclass(frozen=True, slots=True)
class Stock:
    """An inventory and its usage.

    Attributes:
        fields: The fields of the inventory.
        used: The amount that is allocated, or consumed.
        held: The part of that which holds have.
        consumers: The inventories that consume from it now, among the providers that were read.
    """

    fields: Mapping[str, Any]
    used: int
    held: Sequence[HeldPart] = ()
    consumers: Sequence[ConsumingInventory] = ()

    @property
    def capacity(self) -> int:
        """How much can be allocated."""
        return capacity_of(self.fields)

    @property
    def load(self) -> float:
        """Percent of the capacity that is used."""
        if not self.capacity:
            return _WHOLE if self.used else 0
        return _WHOLE * self.used / self.capacity


@dataclass(frozen=True, slots=True)
class Contents:
    """A provider with the parts that were read.

    Attributes:
        row: As a list of providers has it.
        stock: By resource class.
        values: The values of the parts that were read beside the inventories.
    """

    row: Row
    stock: Mapping[str, Stock]
    values: Values

    def with_held(self, held: Mapping[str, Sequence[HeldPart]]) -> "Contents":
        """Return the same with what holds have, by resource class."""
        stock = {name: replace(part, held=held.get(name, ())) for name, part in self.stock.items()}
        return replace(self, stock=stock)

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        document: dict[str, Any] = {
            name: self.row.get(name) for name in ("uuid", "name", "generation")
        }
        document["inventories"] = {
            name: {**stock.fields, "capacity": stock.capacity, "used": stock.used}
            | ({"held": [asdict(part) for part in stock.held]} if stock.held else {})
            | (
                {"consumed_by": [asdict(consumer) for consumer in stock.consumers]}
                if stock.consumers
                else {}
            )
            for name, stock in self.stock.items()
        }
        for part in self.parts:
            document[part.name] = part.written(part.value_in(self.values))
        return document

    @property
    def parts(self) -> list[ListedPart[Any]]:
        """Return the parts that were read beside the inventories."""
        return [part for part in SHOWN_PARTS if part.name in self.values]

    def texts(self, part: ListedPart[Any]) -> list[str]:
        """Return what it has of a part, each in words."""
        return part.texts(part.or_empty(self.values))


def read_contents(
    client: Client, rows: Sequence[Row], wanted: Sequence[ListedPart[Any]], report: Report
) -> dict[str, Contents]:
    """Read the inventories, the usages and some other parts of providers.

    Args:
        client: The endpoint.
        rows: The providers; those that do not exist any more are left out.
        wanted: The other parts.
        report: Called with the progress.

    Returns:
        Contents by uuid.

    Raises:
        ClientError: if a call fails.
    """

    def progress(done: int, total: int) -> None:
        report("reading providers", done, total)

    include = [INVENTORIES.name, "usages", *(part.name for part in wanted)]
    states = read_rows(client, [row["uuid"] for row in rows], include, progress=progress)
    return _with_consumers(
        {
            row["uuid"]: _contents({**row, "generation": state["generation"]}, state, wanted)
            for row in rows
            if (state := states.get(row["uuid"])) is not None
        }
    )


def _with_consumers(known: dict[str, Contents]) -> dict[str, Contents]:
    """Note at each inventory which others consume from it."""
    consumers: defaultdict[tuple[str, str], list[ConsumingInventory]] = defaultdict(list)
    for contents in known.values():
        for name, stock in contents.stock.items():
            for entry in stock.fields.get("consumes", ()) if stock.used else ():
                units = stock.used * entry["amount"]
                consumer = ConsumingInventory(contents.row["name"], name, units)
                consumers[entry["provider"], entry["resource_class"]].append(consumer)
    for (uuid, name), some in consumers.items():
        if uuid in known and name in known[uuid].stock:
            stock = replace(known[uuid].stock[name], consumers=some)
            known[uuid] = replace(known[uuid], stock={**known[uuid].stock, name: stock})
    return known


def _contents(row: Row, state: Mapping[str, Any], wanted: Sequence[ListedPart[Any]]) -> Contents:
    stock = {
        name: Stock(fields, state["usages"].get(name, 0))
        for name, fields in INVENTORIES.read(state["inventories"]).items()
    }
    return Contents(row, stock, values_in(state, wanted))


def children_of(rows: Sequence[Row]) -> dict[str | None, list[Row]]:
    """Return providers by the uuid of their parent; those whose parent is missing are on top."""
    known = {row["uuid"] for row in rows}
    children: dict[str | None, list[Row]] = {}
    for row in sorted(rows, key=lambda row: str(row["name"])):
        parent = row.get("parent_provider_uuid")
        children.setdefault(parent if parent in known else None, []).append(row)
    return children


def with_ancestors(rows: Sequence[Row], chosen: set[str]) -> Iterator[Row]:
    """Yield the providers that were chosen, and those above them."""
    parents = {row["uuid"]: row.get("parent_provider_uuid") for row in rows}
    kept: set[str] = set()
    for uuid in chosen:
        above: str | None = uuid
        while above is not None and above not in kept:
            kept.add(above)
            above = parents.get(above)
    return (row for row in rows if row["uuid"] in kept)


def held_in(client: Client, roots: Sequence[str]) -> Held:
    """Return what holds have in the trees of some providers, or everywhere.

    Empty where the policy hides them.

    Args:
        client: The client that talks to the server.
        roots: Uuids of providers; empty for everywhere.

    Raises:
        ClientError: if the endpoint refuses, or does not answer.
    """
    held: dict[str, dict[str, list[HeldPart]]] = {}
    filters: dict[str, Any] = {"in_tree": f"in:{','.join(roots)}"} if roots else {}
    try:
        holds = list(client.rows("/treeclaim/holds", "holds", **filters))
    except ClientError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return held
    for hold in holds:
        terms = hold["hold"]
        for provider, share in hold["allocations"].items():
            for name, amount in share["resources"].items():
                part = HeldPart(
                    hold["uuid"], amount, hold["project_id"], terms["until"], terms["note"]
                )
                held.setdefault(provider, {}).setdefault(name, []).append(part)
    return held
