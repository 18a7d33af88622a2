# SPDX-License-Identifier: Apache-2.0
"""Names of aggregates, which only Treeclaim stores; Placement has uuids alone."""

from collections.abc import Mapping
from http import HTTPStatus

from treeclaim.client.client import Client
from treeclaim.client.errors import ClientError
from treeclaim.client.session import split_batches
from treeclaim.model.names import normalised_uuid

LONGEST_NAME = 255
"""Most characters of a name."""

_NAMES = "/treeclaim/aggregates/names"

_MOST_NAMES = 10_000
"""Most names of a page, and of a call that writes them."""

AggregateNames = Mapping[str, str]
"""Names by canonical uuid."""


def read_aggregate_names(client: Client) -> AggregateNames | None:
    """Read all names; return None without the extension, or if the policy hides them."""
    if client.extension is None:
        return None
    names: dict[str, str] = {}
    try:
        for page in client.pages(_NAMES, limit=str(_MOST_NAMES)):
            names |= page["names"]
    except ClientError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return None
    return names


def format_aggregate(names: AggregateNames, uuid: str) -> str:
    """Return the name of an aggregate with its uuid, or the uuid alone."""
    name = names.get(normalised_uuid(uuid) or uuid)
    return uuid if name is None else f"{name} ({uuid})"


def name_aggregates(client: Client, names: Mapping[str, str | None]) -> None:
    """Set the names of aggregates by uuid; None removes a name."""
    for batch in split_batches(list(names.items()), _MOST_NAMES):
        client.call("POST", _NAMES, {"names": dict(batch)})
