# SPDX-License-Identifier: Apache-2.0
"""Audit and repairs (contract page 99, section 5)."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, Union

from pydantic import BeforeValidator, Field, WithJsonSchema, create_model

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Answer, Call, operation
from treeclaim.api.protocol.request.bodies import AnyUuid, Body, UuidText, list_length
from treeclaim.api.protocol.request.query_models import READ_INTEGER
from treeclaim.api.protocol.request.schemas import (
    MOST_NAMED,
    TYPE_NAME,
    Shape,
    list_pattern,
    text,
)
from treeclaim.api.resources.allocations.kept_requests import find_tolerated_keys
from treeclaim.gate import Gate
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.model.extension.audit import (
    FindingKind,
    Findings,
    LivingConsumers,
    RepairOutcome,
    RepairResult,
)
from treeclaim.model.names import normalised_uuid, quote_value
from treeclaim.model.provider import MAXIMUM_INTEGER
from treeclaim.store.audit.findings import PROVIDER_TABLES, load_findings
from treeclaim.store.audit.repairs import repair

MOST_REPAIRS = 1_000
DEFAULT_AGE = 3_600
"""Seconds since the newest allocation of an orphan: a server that is being built has allocations before it is listed."""

_OLDEST = 10**9
"""Seconds: thirty years."""


class AuditQuery(Body):
    """The kinds of findings, and the most items of each."""

    kind: Annotated[
        tuple[Annotated[FindingKind, Field(strict=False)], ...],
        list_length(),
        BeforeValidator(lambda value: value.split(",")),
        WithJsonSchema(text(list_pattern(f"({'|'.join(FindingKind)})"))),
    ] = ()
    limit: Annotated[int, Field(ge=1, le=1_000), READ_INTEGER] = 100

    @property
    def kinds(self) -> list[FindingKind]:
        """Return the kinds in the order of the response."""
        return [kind for kind in FindingKind if not self.kind or kind in self.kind]


class LivingBody(Body):
    """Live consumers of the cloud by type; the handler validates each UUID within its deadline."""

    living: Annotated[
        dict[
            Annotated[str, Field(pattern=TYPE_NAME)],
            Annotated[tuple[UuidText, ...], list_length()],
        ],
        Field(max_length=MOST_NAMED),
    ]
    older_than: Annotated[int, Field(ge=0, le=_OLDEST)] = DEFAULT_AGE


_REPAIRABLE: Mapping[tuple[FindingKind, ...], Mapping[str, Any]] = {
    (
        FindingKind.WITHOUT_CONSUMER,
        FindingKind.EMPTY_CONSUMER,
        FindingKind.EXPIRED_HOLD,
        FindingKind.BROKEN_HOLD,
    ): {"consumer": AnyUuid},
    (FindingKind.WITHOUT_PROVIDER,): {
        "table": Annotated[
            str,
            Field(
                pattern=f"^({'|'.join(PROVIDER_TABLES)})$",
                json_schema_extra={"enum": list(PROVIDER_TABLES)},
            ),
        ],
        "provider_id": Annotated[int, Field(ge=0, le=MAXIMUM_INTEGER)],
    },
    (FindingKind.BROKEN_ROOT,): {"provider": AnyUuid},
    (FindingKind.UNUSED_AGGREGATE,): {"uuid": AnyUuid},
    (FindingKind.BROKEN_DRAW,): {
        "consumer": AnyUuid,
        "provider": AnyUuid | None,
        "resource_class": str | None,
        "drawn": int,
        "used": int,
    },
    (FindingKind.ORPHANED,): {"consumer": AnyUuid, "consumer_generation": int},
}
"""Members of a repairable finding by its kind."""

_REPAIRS = [
    create_model(  # type: ignore[call-overload]
        "Repair",
        __base__=Body,
        kind=(Literal[kinds], ...),
        **{name: (form, ...) for name, form in members.items()},
    )
    for kinds, members in _REPAIRABLE.items()
]
_Repair: Any = Annotated[Union[tuple(_REPAIRS)], Field(discriminator="kind")]  # noqa: UP007


class RepairsBody(Body):
    """Repairs, in their order."""

    repairs: Annotated[tuple[_Repair, ...], list_length(1, MOST_REPAIRS)]
    dry_run: bool = False


_FINDINGS: Shape = {"findings": {f"^({'|'.join(FindingKind)})$": {"count": int, "items": [dict]}}}

REPAIRED: Shape = {
    "repairs": [
        {
            "type": "object",
            "properties": {
                "kind": {"enum": list(FindingKind)},
                "result": {"enum": list(RepairResult)},
                "detail": {"type": "string"},
            },
            "required": ["kind", "result"],
        }
    ]
}
"""Each repair of the request with its result."""


_DEADLINE_PASSED = "Not tried: the deadline of the request has passed. Send fewer repairs."
_FAILED = "Not tried: the database failed at an earlier repair."

_ONE_AT_A_TIME = Gate(1)
"""Admits one audit at a time in a worker, as an audit reads the whole database."""


@operation(
    "GET /treeclaim/audit",
    policy="treeclaim:audit:list",
    shows=_FINDINGS,
)
def show_audit(call: Call, query: AuditQuery) -> Answer:
    """Find inconsistent records."""
    if FindingKind.ORPHANED in query.kind:
        raise bad_request("kind=orphaned requires a POST with the living consumers.")
    kinds = [kind for kind in query.kinds if kind is not FindingKind.ORPHANED]
    return _find_findings(call, kinds, query.limit, None)


@operation(
    "POST /treeclaim/audit",
    policy="treeclaim:audit:list",
    shows=_FINDINGS,
    has_cache_headers=False,
)
def audit_against_living(call: Call, query: AuditQuery, body: LivingBody) -> Answer:
    """Find inconsistent records, and consumers that no longer exist in the cloud."""
    living = LivingConsumers(
        {
            name: _parse_living(call, name, uuids)
            for name, uuids in call.deadline.each(body.living.items())
        },
        body.older_than,
    )
    return _find_findings(call, query.kinds, query.limit, living)


def _parse_living(call: Call, name: str, uuids: Sequence[str]) -> frozenset[str]:
    """Parse the UUIDs of live consumers of a type; raise a 400 for an invalid UUID."""
    living = set()
    for number, value in enumerate(call.deadline.each(uuids)):
        uuid = normalised_uuid(value)
        if uuid is None:
            raise bad_request(
                f"JSON does not validate: living.{name}[{number}]: {quote_value(value)!r} is not the UUID of a consumer"
            )
        living.add(uuid)
    return frozenset(living)


@operation(
    "POST /treeclaim/audit/repairs",
    policy="treeclaim:audit:repair",
    shows=REPAIRED,
    has_cache_headers=False,
)
def repair_findings(call: Call, body: RepairsBody) -> Answer:
    """Repair findings of an audit.

    Repairs after the deadline, or after a failure of the database, are reported as refused.

    Raises:
        StoreUnavailableError: if the database fails at the first repair.
    """
    results: list[dict[str, Any]] = []
    not_tried = ""
    for item in body.repairs:
        if not not_tried and call.deadline.is_over:
            not_tried = _DEADLINE_PASSED
        if not_tried:
            results.append(
                _make_repair_document(item, RepairOutcome(RepairResult.REFUSED, not_tried))
            )
            continue
        try:
            outcome = _repair(call, item, dry_run=body.dry_run)
        except StoreUnavailableError as error:
            if not results:
                raise
            outcome = RepairOutcome(RepairResult.REFUSED, str(error))
            not_tried = _DEADLINE_PASSED if call.deadline.is_over else _FAILED
        results.append(_make_repair_document(item, outcome))
    return {"repairs": results}


def _find_findings(
    call: Call, kinds: Sequence[FindingKind], limit: int, living: LivingConsumers | None
) -> dict[str, dict[str, Findings]]:
    tolerated = partial(find_tolerated_keys, call)
    with _ONE_AT_A_TIME.occupy(0, resource="audit"):
        by_kind = call.services.store.read(load_findings, kinds, limit, tolerated, living)
    return {"findings": {kind.value: findings for kind, findings in by_kind.items()}}


def _repair(call: Call, item: Any, *, dry_run: bool) -> RepairOutcome:
    services = call.services
    owner = (services.incomplete_project_id, services.incomplete_user_id)
    end = call.deadline.at
    document = item.model_dump()
    return repair(services.store, item.kind, document, owner, until=end, dry_run=dry_run)


def _make_repair_document(item: Any, outcome: RepairOutcome) -> dict[str, Any]:
    document: dict[str, Any] = {**item.model_dump(), "result": outcome.result}
    if outcome.detail is not None:
        document["detail"] = outcome.detail
    return document
