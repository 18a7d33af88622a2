# SPDX-License-Identifier: Apache-2.0
"""Documents of providers for showing: inventories with usages, holds and consumption, and other parts."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from treeclaim.cli.names import Row
from treeclaim.client import Client, ClientError
from treeclaim.client.aggregates import AggregateNames, shown_aggregate
from treeclaim.client.session import Progress
from treeclaim.client.states import attribute_in_words, capacity_of, read_rows, shown_fields
from treeclaim.model.parts import AGGREGATES, ATTRIBUTES, CONDITIONS, INVENTORIES, ProviderPart

_WHOLE = 100

Document = dict[str, Any]
"""A provider: `uuid`, `name`, `generation`, `inventories` and other parts. An inventory has its fields,
`capacity` and `used`; and, if there are any, `held`: the amounts of holds, and `consumed_by`: the inventories
that consume it now (contract page 102, section 2)."""


def read_contents(
    client: Client, rows: Sequence[Row], parts: Sequence[ProviderPart[Any]], report: Progress
) -> dict[str, Document]:
    """Read inventories, usages and some other parts of providers.

    Args:
        client: The endpoint.
        rows: The providers; those that do not exist any more are left out.
        parts: The other parts.
        report: Called with the progress.

    Returns:
        Documents by uuid.
    """

    def progress(done: int, total: int) -> None:
        report("reading providers", done, total)

    include = [INVENTORIES.name, "usages", *(part.name for part in parts)]
    states = read_rows(client, [row["uuid"] for row in rows], include, progress=progress)
    documents = {}
    for row in rows:
        if (state := states.get(row["uuid"])) is None:
            continue
        inventories = {
            name: {
                **shown_fields(fields),
                "capacity": capacity_of(fields),
                "used": state["usages"].get(name, 0),
            }
            for name, fields in state[INVENTORIES.name].items()
        }
        documents[row["uuid"]] = {
            **{name: state[name] for name in ("uuid", "name", "generation")},
            INVENTORIES.name: inventories,
            **{part.name: part.written(part.read(state[part.name])) for part in parts},
        }
    _add_consumers(documents)
    return documents


def _add_consumers(documents: Mapping[str, Document]) -> None:
    consumers: defaultdict[tuple[str, str], list[Document]] = defaultdict(list)
    for document in documents.values():
        for name, fields in document[INVENTORIES.name].items():
            for entry in fields.get("consumes", ()) if fields["used"] else ():
                used = fields["used"] * entry["amount"]
                consumer = {"provider": document["name"], "resource_class": name, "used": used}
                consumers[entry["provider"], entry["resource_class"]].append(consumer)
    for (uuid, name), entries in consumers.items():
        if uuid in documents and name in documents[uuid][INVENTORIES.name]:
            documents[uuid][INVENTORIES.name][name]["consumed_by"] = entries


def add_held(client: Client, documents: Mapping[str, Document], roots: Sequence[str]) -> None:
    """Add to each inventory the amounts of holds; none where the policy hides them.

    Args:
        client: The endpoint.
        documents: The providers.
        roots: Uuids of the roots of their trees; empty for all trees.
    """
    filters = {"in_tree": f"in:{','.join(roots)}"} if roots else {}
    try:
        holds = list(client.rows("/treeclaim/holds", "holds", **filters))
    except ClientError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return
    for hold in holds:
        terms = {name: hold["hold"][name] for name in ("until", "note")}
        for uuid, allocation in hold["allocations"].items():
            inventories = documents.get(uuid, {}).get(INVENTORIES.name, {})
            for name, amount in allocation["resources"].items():
                if name in inventories:
                    inventories[name].setdefault("held", []).append(
                        {
                            "hold": hold["uuid"],
                            "amount": amount,
                            "project_id": hold["project_id"],
                            **terms,
                        }
                    )


def details_of(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the holds and the consumers of an inventory, each in words."""
    for held in fields.get("held", ()):
        end = "" if held["until"] is None else f" until {held['until']}"
        note = "" if held["note"] is None else f": {held['note']}"
        yield f"{held['amount']} held for {held['project_id']}{end}{note}"
    for consumer in fields.get("consumed_by", ()):
        by = f"{consumer['resource_class']} of {consumer['provider']}"
        yield f"{consumer['used']} consumed by {by}"


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
        value: Of the part, in a document.
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
