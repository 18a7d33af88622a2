# SPDX-License-Identifier: Apache-2.0
"""Audit and repairs (contract page 99, section 5)."""

from collections.abc import Sequence
from typing import Any

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Call, Reply
from treeclaim.api.protocol.request.validation import require_query
from treeclaim.api.protocol.texts import quoted
from treeclaim.api.protocol.timestamps import now
from treeclaim.api.resources.extension.audit import schemas
from treeclaim.gate import Gate
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.model.extension.audit import (
    FindingKind,
    Findings,
    Living,
    Repaired,
    RepairResult,
)
from treeclaim.model.names import normalised_uuid
from treeclaim.store.audit import audit
from treeclaim.store.audit.repairs import repair

_LATE = "Not tried: the time of the request is over. Try again with less."
_FAILED = "Not tried: the database failed before."

_ONE_AT_A_TIME = Gate(1)
"""An audit reads everything: one at a time on a worker."""


def show_audit(call: Call) -> Reply:
    """Look for what is wrong with what is stored."""
    kinds, limit = _asked(call)
    if FindingKind.ORPHANED in kinds:
        if "kind" in dict(call.query()):
            raise bad_request("kind=orphaned needs a POST with the consumers that live.")
        kinds = [kind for kind in kinds if kind is not FindingKind.ORPHANED]
    return Reply(body=_found(call, kinds, limit, None), modified_at=now())


def audit_against_living(call: Call) -> Reply:
    """Look for the same, and for consumers that are not among those that live."""
    kinds, limit = _asked(call)
    body = call.json()
    living = Living(
        {
            name: _living_uuids(call, name, uuids)
            for name, uuids in call.deadline.each(body["living"].items())
        },
        body.get("older_than", schemas.DEFAULT_AGE),
    )
    return Reply(body=_found(call, kinds, limit, living))


def _living_uuids(call: Call, name: str, uuids: Sequence[str]) -> frozenset[str]:
    """Read those who live of one type.

    Raises:
        ApiError: 400 for a text that is no uuid, in the words of the validator.
        RequestGivenUpError: if the deadline has passed.
    """
    found = set()
    for number, text in enumerate(call.deadline.watched(uuids)):
        uuid = normalised_uuid(text)
        if uuid is None:
            raise bad_request(
                f"JSON does not validate: {quoted(repr(text))} is not a 'uuid' Failed validating "
                f"'format' on instance['living'][{name!r}][{number}]"
            )
        found.add(uuid)
    return frozenset(found)


def repair_findings(call: Call) -> Reply:
    """Mend findings, each in a transaction that first checks that it holds.

    All together have the deadline of the request. What was done by then is told, and so it is where
    the database fails; the rest is refused.

    Raises:
        StoreUnavailableError: if the database fails before anything was done.
    """
    body = call.json()
    dry_run = bool(body.get("dry_run", False))
    told: list[dict[str, Any]] = []
    not_tried = ""
    for item in body["repairs"]:
        if not not_tried and call.deadline.is_over:
            not_tried = _LATE
        if not_tried:
            told.append(_told(item, Repaired(RepairResult.REFUSED, not_tried)))
            continue
        try:
            outcome = _repaired(call, item, dry_run=dry_run)
        except StoreUnavailableError as error:
            if not told:
                raise
            outcome = Repaired(RepairResult.REFUSED, str(error))
            not_tried = _LATE if call.deadline.is_over else _FAILED
        told.append(_told(item, outcome))
    return Reply(body={"repairs": told})


def _asked(call: Call) -> tuple[list[FindingKind], int]:
    query = require_query(schemas.QUERY.at(call.version), call.query())
    known = schemas.kinds_at(call.version)
    wanted = set(query["kind"].split(",")) if "kind" in query else set(known)
    return [kind for kind in known if kind in wanted], int(
        query.get("limit", schemas.DEFAULT_ITEMS)
    )


def _found(
    call: Call, kinds: list[FindingKind], limit: int, living: Living | None
) -> dict[str, dict[str, Findings]]:
    with _ONE_AT_A_TIME.held(0, what="audit"):
        found = call.services.store.read(audit.findings, kinds, limit, living)
    return {"findings": {kind.value: findings for kind, findings in found.items()}}


def _repaired(call: Call, item: dict[str, Any], *, dry_run: bool) -> Repaired:
    services = call.services
    owner = (services.incomplete_project_id, services.incomplete_user_id)
    until = call.deadline.at
    kind = FindingKind(item["kind"])
    return repair(services.store, kind, item, owner, until=until, dry_run=dry_run)


def _told(item: dict[str, Any], outcome: Repaired) -> dict[str, Any]:
    told: dict[str, Any] = {**item, "result": outcome.result}
    if outcome.detail is not None:
        told["detail"] = outcome.detail
    return told
