# SPDX-License-Identifier: Apache-2.0
"""Documents of providers for showing: inventories with usages and holds, and other parts."""

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from treeclaim.client import Client, ClientError
from treeclaim.client.aggregates import AggregateNames, shown_aggregate
from treeclaim.client.states import attribute_in_words, capacity_of, shown_fields
from treeclaim.model.parts import AGGREGATES, ATTRIBUTES, CONDITIONS, INVENTORIES, ProviderPart

_WHOLE = 100

Document = dict[str, Any]
"""A row of GET /treeclaim/providers. An inventory also has `capacity`, `used`, and, if there are any, `held`:
the amounts of holds."""


def read_documents(
    client: Client, parts: Sequence[ProviderPart[Any]], **filters: str
) -> dict[str, Document]:
    """Read the providers that pass some filters, with inventories, usages and some other parts; by uuid."""
    include = [INVENTORIES.name, "usages", *(part.name for part in parts)]
    documents = {}
    for row in client.provider_states(include, **filters):
        usages = row.pop("usages")
        row[INVENTORIES.name] = {
            name: {
                **shown_fields(fields),
                "capacity": capacity_of(fields),
                "used": usages.get(name, 0),
            }
            for name, fields in row[INVENTORIES.name].items()
        }
        for part in parts:
            row[part.name] = part.written(part.read(row[part.name]))
        documents[row["uuid"]] = row
    return documents


def add_held(
    client: Client, documents: Mapping[str, Document], filters: Mapping[str, str]
) -> None:
    """Add to each inventory the amounts of holds; none where the policy hides them.

    Args:
        client: The endpoint.
        documents: The providers.
        filters: Filters of the list of holds.
    """
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


def holds_in_words(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the holds of an inventory, each in words."""
    for held in fields.get("held", ()):
        end = "" if held["until"] is None else f" until {held['until']}"
        note = "" if held["note"] is None else f": {held['note']}"
        yield f"{held['amount']} held for {held['project_id']}{end}{note}"


def load_of(fields: Mapping[str, Any]) -> float:
    """Return the percentage of the capacity of an inventory that is used."""
    if not fields["capacity"]:
        return _WHOLE if fields["used"] else 0
    return float(_WHOLE * fields["used"] / fields["capacity"])


def stock_in_words(
    inventories: Mapping[str, Mapping[str, Any]], shown_fields: Sequence[str]
) -> list[str]:
    """Return a line for each inventory: the used amount, the capacity, and some of its fields."""
    return [
        f"{name} {fields['used']}/{fields['capacity']}{fields_in_words(fields, shown_fields)}"
        for name, fields in inventories.items()
    ]


def fields_in_words(fields: Mapping[str, Any], shown_fields: Sequence[str]) -> str:
    """Return some fields of an inventory, in parentheses; empty without any."""
    words = [f"{field.removeprefix('allocation_')} {fields[field]}" for field in shown_fields]
    return f" ({', '.join(words)})" if words else ""


def texts_of(part: ProviderPart[Any], names: AggregateNames, value: Any) -> list[str]:
    """Return the entries of a part in words, with the names of aggregates.

    Args:
        part: The part.
        names: The names of aggregates.
        value: Value of the part in a document.
    """
    if part is AGGREGATES:
        return sorted(shown_aggregate(names, uuid) for uuid in value)
    if part is ATTRIBUTES:
        return [f"{name}={attribute_in_words(value[name])}" for name in sorted(value)]
    if part is CONDITIONS:
        return [_condition_in_words(key, value[key]) for key in sorted(value)]
    return sorted(value)


def _condition_in_words(key: str, condition: Mapping[str, Any]) -> str:
    """Return a condition such as `CLEANING (no_new until 2026-12-01T08:00:00Z): by night`."""
    words = condition["effect"]
    if condition["until"] is not None:
        words += f" until {condition['until']}"
    if condition["on_use"]:
        words += ", since it was used" if condition["began"] else ", once it is used"
    return f"{key} ({words})" + (f": {condition['reason']}" if condition["reason"] else "")
