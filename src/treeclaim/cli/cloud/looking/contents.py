# SPDX-License-Identifier: Apache-2.0
"""What providers hold, read for showing: only what is asked for, many at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treeclaim.cli.cloud.progress import Report
from treeclaim.cli.cloud.providers import Row
from treeclaim.client import Client
from treeclaim.client.bulk import rows_in_bulk
from treeclaim.client.parallel import in_parallel
from treeclaim.model.microversions import Feature

_WHOLE = 100


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a provider is read.

    Attributes:
        traits, aggregates: Whether they are.
    """

    traits: bool = False
    aggregates: bool = False


@dataclass(frozen=True, slots=True)
class Stock:
    """An inventory and its usage.

    Attributes:
        fields: Of the inventory.
        used: The amount that is allocated.
    """

    fields: Mapping[str, Any]
    used: int

    @property
    def capacity(self) -> int:
        """How much can be allocated (contract page 30, section 1)."""
        fields = self.fields
        return int((fields["total"] - fields["reserved"]) * fields["allocation_ratio"])

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
        traits, aggregates: None where they were not read.
    """

    row: Row
    stock: Mapping[str, Stock]
    traits: Sequence[str] | None
    aggregates: Sequence[str] | None

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        found: dict[str, Any] = {
            name: self.row.get(name) for name in ("uuid", "name", "generation")
        }
        found["inventories"] = {
            name: {**stock.fields, "capacity": stock.capacity, "used": stock.used}
            for name, stock in self.stock.items()
        }
        for name, part in (("traits", self.traits), ("aggregates", self.aggregates)):
            if part is not None:
                found[name] = list(part)
        return found


def read_contents(
    client: Client, rows: Sequence[Row], wanted: Wanted, report: Report
) -> dict[str, Contents]:
    """Read what providers hold, by uuid: some hundred in a call where the server has that.

    Then those that are gone by now are left out; other servers refuse to tell of them.

    Raises:
        ClientError: if a call fails.
    """

    def progress(done: int, total: int) -> None:
        report("reading providers", done, total)

    uuids = [row["uuid"] for row in rows]
    whole = rows_in_bulk(client, uuids, _parts(wanted), progress=progress)
    if whole is None:
        found = in_parallel(lambda row: _read(client, row, wanted), rows, progress=progress)
        return {contents.row["uuid"]: contents for contents in found}
    return {
        row["uuid"]: _read_already(row, whole[row["uuid"]]) for row in rows if row["uuid"] in whole
    }


def _parts(wanted: Wanted) -> list[str]:
    asked = (("traits", wanted.traits), ("aggregates", wanted.aggregates))
    return ["inventories", "usages", *(part for part, is_wanted in asked if is_wanted)]


def _read_already(row: Row, whole: Mapping[str, Any]) -> Contents:
    inventories, used = whole["inventories"], whole["usages"]
    traits, aggregates = whole.get("traits"), whole.get("aggregates")
    return Contents(
        {**row, "generation": whole["generation"]},
        {name: Stock(fields, used.get(name, 0)) for name, fields in inventories.items()},
        None if traits is None else sorted(traits),
        None if aggregates is None else sorted(aggregates),
    )


def _read(client: Client, row: Row, wanted: Wanted) -> Contents:
    path = f"/resource_providers/{row['uuid']}"
    inventories = client.get(f"{path}/inventories")["inventories"]
    # Without inventories there is nothing to use.
    used = client.get(f"{path}/usages")["usages"] if inventories else {}
    has = client.versions.has_feature
    return Contents(
        row,
        {name: Stock(fields, used.get(name, 0)) for name, fields in inventories.items()},
        _names(client, path, "traits") if wanted.traits and has(Feature.TRAITS) else None,
        _names(client, path, "aggregates")
        if wanted.aggregates and has(Feature.AGGREGATES)
        else None,
    )


def _names(client: Client, path: str, part: str) -> list[str]:
    return sorted(client.get(f"{path}/{part}")[part])


def children_of(rows: Sequence[Row]) -> dict[str | None, list[Row]]:
    """Return providers by the uuid of their parent; those whose parent is missing are on top."""
    known = {row["uuid"] for row in rows}
    found: dict[str | None, list[Row]] = {}
    for row in sorted(rows, key=lambda row: str(row["name"])):
        parent = row.get("parent_provider_uuid")
        found.setdefault(parent if parent in known else None, []).append(row)
    return found


def with_ancestors(rows: Sequence[Row], chosen: set[str]) -> Iterator[Row]:
    """Yield the providers that were chosen, and those above them."""
    parents = {row["uuid"]: row.get("parent_provider_uuid") for row in rows}
    kept: set[str] = set()
    for own in chosen:
        above: str | None = own
        while above is not None and above not in kept:
            kept.add(above)
            above = parents.get(above)
    return (row for row in rows if row["uuid"] in kept)
