# SPDX-License-Identifier: Apache-2.0
"""Audit and repairs (contract page 99, section 5)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Answer, Call, Forms, Reply, Versioned, operation
from treeclaim.api.protocol.request.schemas import (
    ANY_UUID,
    BOOLEAN,
    INTEGER,
    STRING,
    STRINGS,
    TEXT_OR_NULL,
    TYPE_NAME,
    UUID,
    Schema,
    mapping,
    record,
)
from treeclaim.api.protocol.request.validation import MOST_VALUES_IN_BULK, require_query
from treeclaim.api.protocol.texts import now, quoted
from treeclaim.api.resources.allocations.keeping import tolerated_keys
from treeclaim.gate import Gate
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.model.extension.audit import (
    FindingKind,
    Findings,
    Living,
    Repaired,
    RepairResult,
)
from treeclaim.model.inventory import MAXIMUM_INTEGER
from treeclaim.model.names import normalised_uuid
from treeclaim.store.audit.findings import PARTS, load_findings
from treeclaim.store.audit.repairs import repair

_MOST_ITEMS = 1_000
"""Most findings of each kind in an answer."""

DEFAULT_ITEMS = 100

MOST_REPAIRS = 1_000
"""Repairs that one call may make."""

DEFAULT_AGE = 3_600
"""Seconds since its newest allocation after which a consumer that is not listed is an orphan: a
server that is being built holds something before anybody lists it."""

_OLDEST = 10**9
"""Seconds: thirty years."""


def query() -> Schema:
    """Return the schema of the query."""
    kinds = f"({'|'.join(FindingKind)})"
    return record(
        {},
        {
            "kind": {"type": "string", "pattern": f"^{kinds}(,{kinds})*$"},
            "limit": {"type": "string", "pattern": f"^([1-9][0-9]{{0,2}}|{_MOST_ITEMS})$"},
        },
    )


def with_uuids(schema: Any) -> Any:
    """Describe the texts of the list of living consumers in a copy of its schema."""
    schema["properties"]["living"]["patternProperties"][TYPE_NAME] = {
        "type": "array",
        "items": dict(ANY_UUID),
    }
    return schema


def _item(kind: FindingKind, members: dict[str, Schema]) -> Schema:
    named: dict[str, Schema] = {"kind": {"const": kind.value}}
    return record(named | members)


_REPAIRS: dict[FindingKind, Schema] = {
    kind: _item(kind, members)
    for kind, members in (
        (
            FindingKind.WITHOUT_PROVIDER,
            {
                "table": {"enum": list(PARTS)},
                "provider_id": INTEGER | {"minimum": 0, "maximum": MAXIMUM_INTEGER},
            },
        ),
        (FindingKind.WITHOUT_CONSUMER, {"consumer": UUID}),
        (FindingKind.EMPTY_CONSUMER, {"consumer": UUID}),
        (FindingKind.BROKEN_ROOT, {"provider": UUID}),
        (FindingKind.UNUSED_AGGREGATE, {"uuid": UUID}),
        (FindingKind.EXPIRED_HOLD, {"consumer": UUID}),
        (FindingKind.BROKEN_HOLD, {"consumer": UUID}),
        (
            FindingKind.BROKEN_DRAW,
            {
                "consumer": UUID,
                "provider": {"anyOf": [UUID, {"type": "null"}]},
                "resource_class": TEXT_OR_NULL,
                "drawn": INTEGER,
                "used": INTEGER,
            },
        ),
        (FindingKind.ORPHANED, {"consumer": UUID, "consumer_generation": INTEGER}),
    )
}


def repairs() -> Schema:
    """Return the schema of a list of repairs."""
    known = tuple(FindingKind)
    repair = {"oneOf": [item for kind, item in _REPAIRS.items() if kind in known]}
    return record(
        {"repairs": {"type": "array", "items": repair, "minItems": 1, "maxItems": MOST_REPAIRS}},
        {"dry_run": BOOLEAN},
    )


QUERY = Versioned(query())
LIVING = Versioned(
    record(
        {"living": mapping(TYPE_NAME, STRINGS)},
        {"older_than": {"type": "integer", "minimum": 0, "maximum": _OLDEST}},
    )
)
"""The list of living consumers, of which there may be hundreds of thousands, and a validator checks no clock:
`living_uuids` reads the uuids in it."""

REPAIRS = Versioned(repairs())


_ITEMS: Schema = {"type": "array", "items": {"type": "object"}}
_FINDINGS = record(
    {
        "findings": mapping(
            f"^({'|'.join(FindingKind)})$", record({"count": INTEGER, "items": _ITEMS})
        )
    }
)

FINDINGS = Answer(body=_FINDINGS)
"""The findings by kind."""

FINDINGS_FOR_A_LIST = Answer(body=_FINDINGS, dated=False)
"""The findings for a client that sent a list of living consumers."""

REPAIRED = Answer(
    body=record(
        {
            "repairs": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "kind": {"enum": list(FindingKind)},
                        "result": {"enum": list(RepairResult)},
                        "detail": STRING,
                    },
                    "required": ["kind", "result"],
                },
            }
        }
    ),
    dated=False,
)
"""Each repair as it was asked for, with what became of it."""


_LATE = "Not tried: the time of the request is over. Try again with less."
_FAILED = "Not tried: the database failed before."

_ONE_AT_A_TIME = Gate(1)
"""An audit reads everything: one at a time on a worker."""


@operation(
    "GET /treeclaim/audit",
    policy="treeclaim:audit:list",
    answers=(FINDINGS,),
    query=QUERY,
    needs_opt_in=True,
    media_first=True,
)
def show_audit(call: Call) -> Reply:
    """Look for what is wrong with the records."""
    kinds, limit = _asked(call)
    if FindingKind.ORPHANED in kinds:
        if "kind" in dict(call.query()):
            raise bad_request("kind=orphaned needs a POST with the living consumers.")
        kinds = [kind for kind in kinds if kind is not FindingKind.ORPHANED]
    return Reply(body=_found(call, kinds, limit, None), modified_at=now())


@operation(
    "POST /treeclaim/audit",
    policy="treeclaim:audit:list",
    answers=(FINDINGS_FOR_A_LIST,),
    query=QUERY,
    body=LIVING,
    forms=Forms(body=with_uuids),
    most_values=MOST_VALUES_IN_BULK,
    needs_opt_in=True,
    media_first=True,
)
def audit_against_living(call: Call) -> Reply:
    """Look for what is wrong, and for consumers that no longer exist in the cloud."""
    kinds, limit = _asked(call)
    body = call.json()
    living = Living(
        {
            name: _living_uuids(call, name, uuids)
            for name, uuids in call.deadline.each(body["living"].items())
        },
        body.get("older_than", DEFAULT_AGE),
    )
    return Reply(body=_found(call, kinds, limit, living))


def _living_uuids(call: Call, name: str, uuids: Sequence[str]) -> frozenset[str]:
    """Read the living consumers of one type.

    Raises:
        ApiError: 400 for a text that is not a uuid, in the words of the validator.
        RequestGivenUpError: if the deadline has passed.
    """
    living = set()
    for number, text in enumerate(call.deadline.watched(uuids)):
        uuid = normalised_uuid(text)
        if uuid is None:
            raise bad_request(
                f"JSON does not validate: {quoted(repr(text))} is not a 'uuid' Failed validating "
                f"'format' on instance['living'][{name!r}][{number}]"
            )
        living.add(uuid)
    return frozenset(living)


@operation(
    "POST /treeclaim/audit/repairs",
    policy="treeclaim:audit:repair",
    answers=(REPAIRED,),
    body=REPAIRS,
    needs_opt_in=True,
    media_first=True,
)
def repair_findings(call: Call) -> Reply:
    """Repair findings of an audit that need no guess.

    They share the deadline of the request. What was done by then, or until the database failed, is
    reported; the rest is refused.

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
    query = require_query(QUERY.at(call.version), call.query())
    known = tuple(FindingKind)
    wanted = set(query["kind"].split(",")) if "kind" in query else set(known)
    return [kind for kind in known if kind in wanted], int(query.get("limit", DEFAULT_ITEMS))


def _found(
    call: Call, kinds: list[FindingKind], limit: int, living: Living | None
) -> dict[str, dict[str, Findings]]:
    tolerated = partial(tolerated_keys, call)
    with _ONE_AT_A_TIME.held(0, what="audit"):
        by_kind = call.services.store.read(load_findings, kinds, limit, tolerated, living)
    return {"findings": {kind.value: findings for kind, findings in by_kind.items()}}


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
