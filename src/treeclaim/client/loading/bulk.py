# SPDX-License-Identifier: Apache-2.0
"""Changes in bulk, where the server has that: a thousand providers in a call, all or none."""

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

from treeclaim.client.client import Client
from treeclaim.client.errors import ClientError, UnsupportedFeatureError
from treeclaim.client.loading.changes import Action, Change, State, changed_parts, is_moved
from treeclaim.client.reports import BATCH, Reports

_REFUSALS = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
}
"""What is about the providers of a call; single calls then find out about which."""


def batches(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    """Yield changes in pieces that fit into a call."""
    for first in range(0, len(changes), BATCH):
        yield changes[first : first + BATCH]


def applied_in_bulk(client: Client, changes: Sequence[Change]) -> bool:
    """Make providers, or change them, by one call; return False if that was refused.

    Nothing was done then, and single calls may do what can be done.

    Raises:
        ClientError: if the endpoint fails.
    """
    if any(change.action not in {Action.CREATE, Action.CHANGE} for change in changes):
        return False
    try:
        Reports(client).apply([_entry(change) for change in changes])
    except UnsupportedFeatureError:
        return False
    except ClientError as error:
        if error.status not in _REFUSALS:
            raise
        return False
    return True


def _entry(change: Change) -> dict[str, Any]:
    after = change.after
    if after is None:
        raise ValueError("what goes is nothing that is applied")
    entry: dict[str, Any] = {"uuid": after.uuid}
    before = change.before
    if before is None:
        before = State(after.uuid, after.name, after.parent)
        entry |= {"name": after.name, "parent_provider_uuid": after.parent}
    else:
        entry["generation"] = before.generation
        if is_moved(before, after):
            entry |= {"name": after.name, "parent_provider_uuid": after.parent}
    for part in changed_parts(before, after):
        value = getattr(after, part)
        entry[part] = sorted(value) if isinstance(value, frozenset) else value
    return entry
