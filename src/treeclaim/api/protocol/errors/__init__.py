# SPDX-License-Identifier: Apache-2.0
"""Errors of the API: statuses, codes and texts (contract page 00, sections 3 and 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from treeclaim.model import errors as model
from treeclaim.model.extension import batch
from treeclaim.model.extension import errors as extension
from treeclaim.model.query import value_parsers as query

UNDEFINED = "placement.undefined_code"
INVENTORY_IN_USE = "placement.inventory.inuse"
CONCURRENT_UPDATE = "placement.concurrent_update"
DUPLICATE_NAME = "placement.duplicate_name"
PROVIDER_IN_USE = "placement.resource_provider.inuse"
CANNOT_DELETE_PARENT = "placement.resource_provider.cannot_delete_parent"
PROVIDER_NOT_FOUND = "placement.resource_provider.not_found"
BAD_VALUE = "placement.query.bad_value"
DEADLINE = "treeclaim.deadline"
CONSUMER_EXISTS = "treeclaim.consumer_exists"
UNPLACED = "treeclaim.unplaced"
HOLD = "treeclaim.hold"
MIXES = "treeclaim.mixes"
CONSUMPTION = "treeclaim.consumption"


class ApiError(Exception):
    """An error response.

    Attributes:
        detail: The text for people; clients match some of its phrases.
        code: One of the codes above; shown from 1.23.
        headers: Additional response headers.
        members: Additional members of the error object.
        further_errors: Further errors of the same response.
    """

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        code: str = UNDEFINED,
        *,
        headers: dict[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
        further_errors: Sequence["ApiError"] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.code = code
        self.headers = headers or {}
        self.members = members or {}
        self.further_errors = tuple(further_errors)


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """The response to an error of the model.

    Attributes:
        kind: Kind of the conflict (page 98, section 6); empty for none.
        members: Names of the conflict's members; `name=path` if the attribute of the error has another name.
    """

    status: HTTPStatus
    code: str = UNDEFINED
    kind: str = ""
    members: str = ""

    def describe_conflict(self, error: BaseException) -> dict[str, Any] | None:
        """Return the member `conflict` of an error; None without one."""
        by = getattr(error, "by", None)
        consuming = None if by is None else {"provider": by[0], "resource_class": by[1]}
        if consuming is not None and not isinstance(error, model.CapacityExceededError):
            return {"kind": "consumption", **consuming}
        if not self.kind:
            return None
        conflict = {"kind": self.kind}
        for member in self.members.split():
            name, _, path = member.partition("=")
            conflict[name] = _read_attribute(error, path or name)
        return conflict if consuming is None else {**conflict, "by": consuming}


def _read_attribute(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value[int(step)] if step.isdigit() else getattr(value, step)
    return value


_conflict = partial(ErrorRule, HTTPStatus.CONFLICT)
_UNAVAILABLE = ErrorRule(HTTPStatus.SERVICE_UNAVAILABLE)

_CLASS = "provider=provider_uuid resource_class"
_FIRST_CLASS = "provider=provider_uuid resource_class=resource_classes.0"
_UNITS = " min_unit=inventory.min_unit max_unit=inventory.max_unit step_size=inventory.step_size"

ERROR_RULES: Mapping[type[BaseException], ErrorRule] = {
    model.DuplicateProviderError: _conflict(DUPLICATE_NAME),
    model.ProviderHasChildrenError: _conflict(CANNOT_DELETE_PARENT),
    model.ProviderInUseError: _conflict(PROVIDER_IN_USE),
    model.ProviderGenerationConflictError: _conflict(
        CONCURRENT_UPDATE, "provider_generation", "uuid expected=actual given"
    ),
    model.InventoryExistsError: _conflict(CONCURRENT_UPDATE, "inventory_exists", _CLASS),
    model.InventoryInUseError: _conflict(
        INVENTORY_IN_USE, "inventory_in_use", _FIRST_CLASS + " used"
    ),
    extension.ConsumptionError: _conflict(CONSUMPTION),
    model.PreferredTraitsNotFoundError: ErrorRule(HTTPStatus.BAD_REQUEST, BAD_VALUE),
    batch.BatchForbiddenError: ErrorRule(HTTPStatus.FORBIDDEN),
    model.ConsumerGenerationConflictError: _conflict(
        CONCURRENT_UPDATE, "consumer_generation", "uuid=consumer_uuid expected given"
    ),
    model.InventoryMissingError: _conflict(UNDEFINED, "no_inventory", _FIRST_CLASS),
    model.UnitConstraintError: _conflict(UNDEFINED, "amount_unit", _CLASS + " requested" + _UNITS),
    model.CapacityExceededError: _conflict(UNDEFINED, "over_capacity", _CLASS + " requested free"),
    model.ConcurrentChangeError: _conflict(CONCURRENT_UPDATE, "retries_exhausted"),
    model.NotFoundError: ErrorRule(HTTPStatus.NOT_FOUND),
    model.ConflictError: _conflict(),
    extension.ConditionedError: _conflict(
        UNDEFINED, "condition", "provider=provider_uuid key reason"
    ),
    extension.HoldRefusedError: _conflict(HOLD, "hold", "uuid reason"),
    extension.ConsumerExistsError: _conflict(CONSUMER_EXISTS),
    extension.MixesFullError: _conflict(MIXES),
    model.InvalidValueError: ErrorRule(HTTPStatus.BAD_REQUEST),
    model.StoreUnavailableError: _UNAVAILABLE,
    model.RequestGivenUpError: _UNAVAILABLE,
    model.OverloadedError: _UNAVAILABLE,
    model.ClientGoneError: _UNAVAILABLE,
}
"""The response to each error of the model; an error without a row has that of its nearest base class."""

RETRY_AFTER = "5"
"""Seconds after which a client may retry if the database is unreachable."""

RETRY_WHEN_BUSY = "1"
"""Seconds after which a client may retry if the service is overloaded: enough for short requests to be answered."""


class Refusal:
    """The response of an operation to errors of the model, if its contract differs from `ERROR_RULES`.

    Attributes:
        text: A format string over the variables of the path and `error`, such as `{error.uuid}`.
        errors: The types of the errors.
        status, code: Override those of `ERROR_RULES` unless None.
    """

    def __init__(
        self,
        text: str,
        *errors: type[model.TreeclaimError],
        status: HTTPStatus | None = None,
        code: str | None = None,
    ) -> None:
        self.text = text
        self.errors = errors
        self.status = status
        self.code = code


def to_api_error(
    error: model.TreeclaimError,
    text: str | None = None,
    *,
    status: HTTPStatus | None = None,
    code: str | None = None,
) -> ApiError:
    """Convert an error of the model to a response; the arguments override its text and `ERROR_RULES`.

    An internal error without a rule becomes a 500, which does not show its text.
    """
    kinds = (kind for kind in type(error).__mro__ if kind in ERROR_RULES)
    kind = next(kinds, None)
    if kind is None:
        return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "Unexpected API Error.")
    rule = ERROR_RULES[kind]
    headers = {}
    if isinstance(error, model.StoreUnavailableError | model.RequestGivenUpError):
        headers["Retry-After"] = RETRY_AFTER
    elif isinstance(error, model.OverloadedError):
        headers["Retry-After"] = RETRY_WHEN_BUSY
    if text is None and isinstance(error, query.QueryError):
        return _make_query_error(error)
    if isinstance(error, query.InvalidQueryError) and error.code:
        code = code or f"placement.query.{error.code}"
    members = {}
    if isinstance(error, extension.ConsumerExistsError):
        members["consumers"] = list(error.consumers)
    return ApiError(
        status or rule.status,
        str(error) if text is None else text,
        code or rule.code,
        headers=headers,
        members=members,
    )


def _make_query_error(error: query.QueryError) -> ApiError:
    """Return a 400 with the place of the query that has an unknown name."""
    is_class = isinstance(error.error, model.ResourceClassNotFoundError)
    prefix = "Invalid resource class in resources parameter: " if is_class else ""
    is_preferred = isinstance(error.error, model.PreferredTraitsNotFoundError)
    return bad_request(
        f"{error.where}: {prefix}{error.error}", BAD_VALUE if is_preferred else UNDEFINED
    )


def bad_request(detail: str, code: str = UNDEFINED) -> ApiError:
    """Return a 400."""
    return ApiError(HTTPStatus.BAD_REQUEST, detail, code)


def not_found(detail: str = "") -> ApiError:
    """Return a 404."""
    return ApiError(HTTPStatus.NOT_FOUND, detail)
