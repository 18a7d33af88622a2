# SPDX-License-Identifier: Apache-2.0
"""Reads providers with usages and holds, and formats their parts."""

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from treeclaim.client import Client, ClientError
from treeclaim.client.aggregates import AggregateNames, format_aggregate
from treeclaim.client.states import compute_capacity, format_attribute, omit_empty_consumes
from treeclaim.model.parts import AGGREGATES, ATTRIBUTES, CONDITIONS, INVENTORIES, ProviderPart

_PERCENT = 100

Document = dict[str, Any]
"""A row of GET /treeclaim/providers; each inventory also has `capacity`, `used`, and `held`, if it has holds."""


def read_documents(
    client: Client, parts: Sequence[ProviderPart[Any]], **filters: str
) -> dict[str, Document]:
    """Read filtered providers with inventories, usages and further parts; return them by uuid."""
    include = [INVENTORIES.name, "usages", *(part.name for part in parts)]
    documents = {}
    for row in client.provider_states(include, **filters):
        usages = row.pop("usages")
        row[INVENTORIES.name] = {
            name: {
                **omit_empty_consumes(fields),
                "capacity": compute_capacity(fields),
                "used": usages.get(name, 0),
            }
            for name, fields in row[INVENTORIES.name].items()
        }
        for part in parts:
            row[part.name] = part.to_json(part.from_json(row[part.name]))
        documents[row["uuid"]] = row
    return documents


def add_holds(
    client: Client, documents: Mapping[str, Document], filters: Mapping[str, str]
) -> None:
    """Add the amounts of filtered holds to the inventories, unless the policy hides holds."""
    try:
        holds = list(client.rows("/treeclaim/holds", "holds", **filters))
    except ClientError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return
    for hold in holds:
        terms = {name: hold["hold"][name] for name in ("until", "note")}
        terms |= {"hold": hold["uuid"], "project_id": hold["project_id"]}
        for uuid, allocation in hold["allocations"].items():
            inventories = documents.get(uuid, {}).get(INVENTORIES.name, {})
            for name, amount in allocation["resources"].items():
                if name in inventories:
                    inventories[name].setdefault("held", []).append({"amount": amount, **terms})


def format_holds(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the holds of an inventory as text."""
    for hold in fields.get("held", ()):
        end = "" if hold["until"] is None else f" until {hold['until']}"
        note = "" if hold["note"] is None else f": {hold['note']}"
        yield f"{hold['amount']} held for {hold['project_id']}{end}{note}"


def compute_load(fields: Mapping[str, Any]) -> float:
    """Return the used percentage of an inventory's capacity."""
    if not fields["capacity"]:
        return _PERCENT if fields["used"] else 0
    return float(_PERCENT * fields["used"] / fields["capacity"])


def format_inventories(
    inventories: Mapping[str, Mapping[str, Any]], shown_fields: Sequence[str]
) -> list[str]:
    """Return a line for each inventory: used amount, capacity, and the shown fields."""
    return [
        f"{name} {fields['used']}/{fields['capacity']}{format_fields(fields, shown_fields)}"
        for name, fields in inventories.items()
    ]


def format_fields(fields: Mapping[str, Any], shown_fields: Sequence[str]) -> str:
    """Return fields of an inventory in parentheses; empty without fields."""
    words = [f"{field.removeprefix('allocation_')} {fields[field]}" for field in shown_fields]
    return f" ({', '.join(words)})" if words else ""


def format_part(part: ProviderPart[Any], names: AggregateNames, value: Any) -> list[str]:
    """Return the entries of a part's JSON value as sorted texts, with `names` of aggregates."""
    if part is AGGREGATES:
        return sorted(format_aggregate(names, uuid) for uuid in value)
    if part is ATTRIBUTES:
        return [f"{name}={format_attribute(value[name])}" for name in sorted(value)]
    if part is CONDITIONS:
        return [_format_condition(key, value[key]) for key in sorted(value)]
    return sorted(value)


def _format_condition(key: str, condition: Mapping[str, Any]) -> str:
    """Return a condition such as `CLEANING (no_new until 2026-12-01T08:00:00Z): by night`."""
    words = condition["effect"]
    if condition["until"] is not None:
        words += f" until {condition['until']}"
    if condition["on_use"]:
        words += ", since it was used" if condition["began"] else ", once it is used"
    return f"{key} ({words})" + (f": {condition['reason']}" if condition["reason"] else "")
