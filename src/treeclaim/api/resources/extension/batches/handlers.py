# SPDX-License-Identifier: Apache-2.0
"""Applying in bulk (contract page 99, section 8)."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson

from treeclaim.api.protocol.errors import ApiError, api_error, bad_request
from treeclaim.api.protocol.errors.conflicts import telling
from treeclaim.api.protocol.operations import Call, Reply
from treeclaim.api.resources.extension.batches import schemas
from treeclaim.api.resources.inventories.handlers import inventory_of
from treeclaim.model.errors import ResourceClassNotFoundError
from treeclaim.model.extension.batch import (
    Applied,
    BatchEntry,
    BatchForbiddenError,
    BatchRefusedError,
    NamelessError,
    Problem,
    RepeatedProviderError,
    UnknownNameError,
    Unnamed,
)
from treeclaim.model.microversions import NEWEST
from treeclaim.model.names import normalised_uuid
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations.batches.apply import MOST_PROBLEMS, apply

_RULES = {
    "inventories": ("placement:resource_providers:inventories:update",),
    "traits": ("placement:resource_providers:traits:update",),
    "aggregates": ("placement:resource_providers:aggregates:update",),
}
"""Of the URLs of what an entry may name."""

_RULES_OF_NAMES = ("placement:traits:update", "placement:resource_classes:update")

_OF_THE_FORM = (NamelessError, RepeatedProviderError, ResourceClassNotFoundError, UnknownNameError)
"""Errors that are 400 here: they are about what was sent, not about the URL."""


class _DryRunError(Exception):
    """Undoes a batch of which only the outcome is asked for."""

    def __init__(self, applied: Sequence[Applied]) -> None:
        super().__init__()
        self.applied = applied


def apply_providers(call: Call) -> Reply:
    """Bring many providers to a state, all or none."""
    body = call.json()
    create_names = bool(body.get("create_names", False))
    _require_allowed(call, body["providers"], create_names=create_names)
    _require_forms(body["providers"])
    entries = [_entry(item) for item in body["providers"]]
    try:
        applied = _applied(
            call, entries, create_names=create_names, dry_run=bool(body.get("dry_run", False))
        )
    except BatchForbiddenError as error:
        raise ApiError(HTTPStatus.FORBIDDEN, str(error)) from error
    except BatchRefusedError as error:
        raise _refusal(error) from error
    return Reply(body={"providers": applied})


def _applied(
    call: Call, entries: Sequence[BatchEntry], *, create_names: bool, dry_run: bool
) -> Sequence[Applied]:
    is_allowed = _allowing(call)

    def operation(transaction: WriteTransaction) -> Sequence[Applied]:
        applied = apply(transaction, entries, is_allowed, create_names=create_names)
        if dry_run:
            raise _DryRunError(applied)
        return applied

    try:
        return call.services.store.write(operation)
    except _DryRunError as undone:
        return undone.applied


def _allowing(call: Call) -> Callable[[str], bool]:
    target = {"project_id": call.identity.project_id, "user_id": call.identity.user_id}

    def is_allowed(rule: str) -> bool:
        return call.services.policy.allows(rule, call.identity, target)

    return is_allowed


def _require_allowed(
    call: Call, items: Sequence[Mapping[str, Any]], *, create_names: bool
) -> None:
    named = set().union(*items)
    for part, rules in _RULES.items():
        if part in named:
            for rule in rules:
                call.require_allowed(rule)
    if create_names:
        for rule in _RULES_OF_NAMES:
            call.require_allowed(rule)


def _require_forms(items: Sequence[Mapping[str, Any]]) -> None:
    """Check each entry by itself; tell of all that are wrong.

    Raises:
        ApiError: 400.
    """
    wrong = []
    for index, item in enumerate(items):
        problem = schemas.ENTRY_CHECKER.problem(item, length=len(orjson.dumps(item)))
        if problem is not None:
            wrong.append(f"providers[{index}]: JSON does not validate: {problem}")
        if len(wrong) == MOST_PROBLEMS:
            break
    if wrong:
        raise ApiError(
            HTTPStatus.BAD_REQUEST, wrong[0], others=[bad_request(text) for text in wrong[1:]]
        )


def _entry(item: Mapping[str, Any]) -> BatchEntry:
    inventories = item.get("inventories")
    generation = item.get("generation")
    return BatchEntry(
        uuid=normalised_uuid(item["uuid"]) if "uuid" in item else None,
        name=item.get("name"),
        parent=item.get("parent_provider_uuid", Unnamed.UNNAMED),
        generation=None if generation is None else int(generation),
        inventories=None
        if inventories is None
        else {name: inventory_of(inventory) for name, inventory in inventories.items()},
        traits=item.get("traits"),
        aggregates=item.get("aggregates"),
    )


def _refusal(error: BatchRefusedError) -> ApiError:
    """Return the answer: an error for each problem.

    The least status is that of all, whatever the order of the entries; its first error comes first.
    """
    errors = [_single(problem) for problem in error.problems]
    first = min(errors, key=lambda told: told.status)
    others = [told for told in errors if told is not first]
    return ApiError(
        first.status, first.detail, first.code, members=dict(first.members), others=others
    )


def _single(problem: Problem) -> ApiError:
    prefix = f"providers[{problem.index}]: "
    if isinstance(problem.error, _OF_THE_FORM):
        return bad_request(f"{prefix}{problem.error}")
    return telling(api_error(problem.error, prefix=prefix), problem.error, NEWEST)
