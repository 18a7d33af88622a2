# SPDX-License-Identifier: Apache-2.0
"""Audit and repairs (contract page 99, section 5)."""

from typing import Any

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Call, Reply
from treeclaim.api.protocol.request.validation import require_query
from treeclaim.api.protocol.timestamps import now
from treeclaim.api.resources.extension.audit import schemas
from treeclaim.gate import Gate
from treeclaim.model.extension.audit import FindingKind, Findings, Living
from treeclaim.model.names import normalised_uuid
from treeclaim.store.audit import audit
from treeclaim.store.audit.repairs import repair

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
            name: frozenset(normalised_uuid(uuid) or uuid for uuid in uuids)
            for name, uuids in body["living"].items()
        },
        body.get("older_than", schemas.DEFAULT_AGE),
    )
    return Reply(body=_found(call, kinds, limit, living))


def repair_findings(call: Call) -> Reply:
    """Mend findings, each in a transaction that first checks that it holds."""
    services = call.services
    owner = (services.incomplete_project_id, services.incomplete_user_id)
    body = call.json()
    dry_run = bool(body.get("dry_run", False))
    return Reply(
        body={
            "repairs": [_repaired(call, item, owner, dry_run=dry_run) for item in body["repairs"]]
        }
    )


def _asked(call: Call) -> tuple[list[FindingKind], int]:
    query = require_query(schemas.QUERY.at(call.version), call.query())
    wanted = set(query["kind"].split(",")) if "kind" in query else set(FindingKind)
    return [kind for kind in FindingKind if kind in wanted], int(
        query.get("limit", schemas.DEFAULT_ITEMS)
    )


def _found(
    call: Call, kinds: list[FindingKind], limit: int, living: Living | None
) -> dict[str, dict[str, Findings]]:
    with _ONE_AT_A_TIME.held(0, what="audit"):
        found = call.services.store.read(audit.findings, kinds, limit, living)
    return {"findings": {kind.value: findings for kind, findings in found.items()}}


def _repaired(
    call: Call, item: dict[str, Any], owner: tuple[str, str], *, dry_run: bool
) -> dict[str, Any]:
    kind = FindingKind(item["kind"])
    outcome = repair(call.services.store, kind, item, owner, dry_run=dry_run)
    told: dict[str, Any] = {**item, "result": outcome.result}
    if outcome.detail is not None:
        told["detail"] = outcome.detail
    return told
