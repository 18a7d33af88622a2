# SPDX-License-Identifier: Apache-2.0
"""Applying in bulk: POST /treeclaim/providers (contract page 99, section 8)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import WithJsonSchema

from treeclaim.api.protocol.errors import ApiError, bad_request
from treeclaim.api.protocol.operations import Call, DescribedResponse, Reply, operation
from treeclaim.api.protocol.request.bodies import Body, BodyReader, items
from treeclaim.api.protocol.request.schemas import INTEGER, STRING, STRINGS, record
from treeclaim.api.resources.extension.parts import ProviderEntry
from treeclaim.model.extension.batches.batch import (
    MOST_PROBLEMS,
    BatchEntry,
    BatchResult,
    EntryOutcome,
)
from treeclaim.model.parts import PARTS
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations.providers.entries import apply

_MOST_ENTRIES = 1_000
"""Providers in one call."""

_ENTRY = BodyReader(ProviderEntry)


class BatchBody(Body):
    """Wanted states of providers; each entry is checked by itself, to report all faults."""

    providers: Annotated[
        tuple[dict[str, Any], ...],
        items(1, _MOST_ENTRIES),
        WithJsonSchema(
            {"type": "array", "minItems": 1, "maxItems": _MOST_ENTRIES, "items": _ENTRY.schema}
        ),
    ]
    create_names: bool = False
    dry_run: bool = False


_APPLIED = DescribedResponse(
    body=record(
        {
            "providers": {
                "type": "array",
                "items": record(
                    {
                        "uuid": STRING,
                        "generation": INTEGER,
                        "result": {"enum": [result.value for result in BatchResult]},
                        "changed": STRINGS,
                    }
                ),
            }
        }
    ),
    dated=False,
)
"""The outcome of each entry, in their order."""

_RULES_OF_NAMES = ("placement:traits:update", "placement:resource_classes:update")


class _DryRunError(Exception):
    """Undoes a batch of which only the outcome is wanted."""

    def __init__(self, applied: Sequence[EntryOutcome]) -> None:
        super().__init__()
        self.applied = applied


@operation(
    "POST /treeclaim/providers",
    policy="placement:resource_providers:list",
    answers=(_APPLIED,),
)
def apply_providers(call: Call, body: BatchBody) -> Reply:
    """Create or change many resource providers, all or none."""
    _require_allowed(call, body)
    read_bodies = read_entries(call, body.providers)
    entries = [entry.read() for entry in call.deadline.each(read_bodies)]
    applied = _apply(call, entries, create_names=body.create_names, dry_run=body.dry_run)
    return Reply(body={"providers": applied})


def _apply(
    call: Call, entries: Sequence[BatchEntry], *, create_names: bool, dry_run: bool
) -> Sequence[EntryOutcome]:
    def operation(transaction: WriteTransaction) -> Sequence[EntryOutcome]:
        applied = apply(transaction, entries, call.is_allowed, create_names=create_names)
        if dry_run:
            raise _DryRunError(applied)
        return applied

    try:
        return call.services.store.write(operation)
    except _DryRunError as undone:
        return undone.applied


def _require_allowed(call: Call, body: BatchBody) -> None:
    named = set().union(*body.providers)
    for part in PARTS:
        if part.name in named:
            call.require_allowed(part.write_rule)
    if body.create_names:
        for rule in _RULES_OF_NAMES:
            call.require_allowed(rule)


def read_entries(
    call: Call, documents: Sequence[Mapping[str, Any]], reader: BodyReader = _ENTRY
) -> list[Any]:
    """Read the entries of a batch, each by itself, into the model of a reader.

    Raises:
        ApiError: 400 that names all faulty entries.
        RequestGivenUpError: if the deadline has passed.
    """
    entries, wrong = [], []
    for index, document in enumerate(call.deadline.each(documents)):
        try:
            entries.append(reader.read(document))
        except ApiError as error:
            wrong.append(bad_request(f"providers[{index}]: {error.detail}"))
        if len(wrong) == MOST_PROBLEMS:
            break
    if wrong:
        raise ApiError(wrong[0].status, wrong[0].detail, others=wrong[1:])
    return entries
