# SPDX-License-Identifier: Apache-2.0
"""Errors as clients see them: status, code, text and document (contract page 00, sections 3 and 6)."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from treeclaim.model import errors as model

UNDEFINED = "placement.undefined_code"
INVENTORY_IN_USE = "placement.inventory.inuse"
CONCURRENT_UPDATE = "placement.concurrent_update"
DUPLICATE_NAME = "placement.duplicate_name"
PROVIDER_IN_USE = "placement.resource_provider.inuse"
CANNOT_DELETE_PARENT = "placement.resource_provider.cannot_delete_parent"
PROVIDER_NOT_FOUND = "placement.resource_provider.not_found"
DUPLICATE_KEY = "placement.query.duplicate_key"
BAD_VALUE = "placement.query.bad_value"
MISSING_VALUE = "placement.query.missing_value"
DEADLINE = "treeclaim.deadline"
CONSUMER_EXISTS = "treeclaim.consumer_exists"
UNPLACED = "treeclaim.unplaced"
HOLD = "treeclaim.hold"
MIXES = "treeclaim.mixes"
CONSUMPTION = "treeclaim.consumption"


class ApiError(Exception):
    """An answer that is an error.

    Attributes:
        status: HTTP status.
        detail: What was wrong, for people; some phrases are matched by clients.
        code: One of the codes above; shown from 1.23.
        headers: More response headers.
        members: More members of the error object.
        others: More errors of the same answer, each an object of its own.
    """

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        code: str = UNDEFINED,
        *,
        headers: dict[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
        others: Sequence["ApiError"] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.code = code
        self.headers = headers or {}
        self.members = members or {}
        self.others = tuple(others)


_STATUS: dict[type[model.TreeclaimError], tuple[HTTPStatus, str]] = {
    model.ProviderNotFoundError: (HTTPStatus.NOT_FOUND, UNDEFINED),
    model.DuplicateProviderError: (HTTPStatus.CONFLICT, DUPLICATE_NAME),
    model.InvalidParentError: (HTTPStatus.BAD_REQUEST, UNDEFINED),
    model.ProviderHasChildrenError: (HTTPStatus.CONFLICT, CANNOT_DELETE_PARENT),
    model.ProviderInUseError: (HTTPStatus.CONFLICT, PROVIDER_IN_USE),
    model.ProviderGenerationConflictError: (HTTPStatus.CONFLICT, CONCURRENT_UPDATE),
    model.InventoryNotFoundError: (HTTPStatus.NOT_FOUND, UNDEFINED),
    model.InventoryExistsError: (HTTPStatus.CONFLICT, CONCURRENT_UPDATE),
    model.InventoryInUseError: (HTTPStatus.CONFLICT, INVENTORY_IN_USE),
    model.ConsumptionError: (HTTPStatus.CONFLICT, CONSUMPTION),
    model.CapacityTooSmallError: (HTTPStatus.BAD_REQUEST, UNDEFINED),
    model.ResourceClassNotFoundError: (HTTPStatus.NOT_FOUND, UNDEFINED),
    model.ResourceClassExistsError: (HTTPStatus.CONFLICT, UNDEFINED),
    model.ResourceClassInUseError: (HTTPStatus.CONFLICT, UNDEFINED),
    model.StandardResourceClassError: (HTTPStatus.BAD_REQUEST, UNDEFINED),
    model.TraitsNotFoundError: (HTTPStatus.BAD_REQUEST, UNDEFINED),
    model.PreferredTraitsNotFoundError: (HTTPStatus.BAD_REQUEST, BAD_VALUE),
    model.QueryError: (HTTPStatus.BAD_REQUEST, UNDEFINED),
    model.TraitInUseError: (HTTPStatus.CONFLICT, UNDEFINED),
    model.StandardTraitError: (HTTPStatus.BAD_REQUEST, UNDEFINED),
    model.ConsumerGenerationConflictError: (HTTPStatus.CONFLICT, CONCURRENT_UPDATE),
    model.AllocationProviderNotFoundError: (HTTPStatus.BAD_REQUEST, UNDEFINED),
    model.InventoryMissingError: (HTTPStatus.CONFLICT, UNDEFINED),
    model.UnitConstraintError: (HTTPStatus.CONFLICT, UNDEFINED),
    model.CapacityExceededError: (HTTPStatus.CONFLICT, UNDEFINED),
    model.ConcurrentChangeError: (HTTPStatus.CONFLICT, CONCURRENT_UPDATE),
    model.AllocationsNotFoundError: (HTTPStatus.NOT_FOUND, UNDEFINED),
    model.ConditionedError: (HTTPStatus.CONFLICT, UNDEFINED),
    model.ConditionNotFoundError: (HTTPStatus.NOT_FOUND, UNDEFINED),
    model.ConditionsFullError: (HTTPStatus.CONFLICT, UNDEFINED),
    model.HoldRefusedError: (HTTPStatus.CONFLICT, HOLD),
    model.ConsumerExistsError: (HTTPStatus.CONFLICT, CONSUMER_EXISTS),
    model.HoldMisusedError: (HTTPStatus.BAD_REQUEST, UNDEFINED),
    model.MixNotFoundError: (HTTPStatus.NOT_FOUND, UNDEFINED),
    model.MixesFullError: (HTTPStatus.CONFLICT, MIXES),
    model.SearchGivenUpError: (HTTPStatus.BAD_REQUEST, UNDEFINED),
    model.SearchTooLargeError: (HTTPStatus.BAD_REQUEST, UNDEFINED),
    model.InvalidValueError: (HTTPStatus.BAD_REQUEST, UNDEFINED),
    model.StoreUnavailableError: (HTTPStatus.SERVICE_UNAVAILABLE, UNDEFINED),
    model.RequestGivenUpError: (HTTPStatus.SERVICE_UNAVAILABLE, UNDEFINED),
    model.OverloadedError: (HTTPStatus.SERVICE_UNAVAILABLE, UNDEFINED),
    model.ClientGoneError: (HTTPStatus.SERVICE_UNAVAILABLE, UNDEFINED),
}

RETRY_AFTER = "5"
"""Seconds after which a client may retry when the database was unreachable."""

RETRY_WHEN_BUSY = "1"
"""Seconds after which a client may retry when the service was overloaded: a short request has its
turn by then."""


def api_error(
    error: model.TreeclaimError,
    *,
    prefix: str = "",
    status: HTTPStatus | None = None,
    code: str | None = None,
) -> ApiError:
    """Turn an error of the model into an answer.

    Args:
        error: What happened.
        prefix: Put before its text, where an operation's contract wants one.
        status: Instead of the usual one, where an operation's contract wants another.
        code: Instead of the usual one.
    """
    usual_status, usual_code = _STATUS[type(error)]
    headers = {}
    if isinstance(error, model.StoreUnavailableError | model.RequestGivenUpError):
        headers["Retry-After"] = RETRY_AFTER
    elif isinstance(error, model.OverloadedError):
        headers["Retry-After"] = RETRY_WHEN_BUSY
    members = {}
    if isinstance(error, model.ConsumerExistsError):
        members["consumers"] = list(error.consumers)
    return ApiError(
        status or usual_status,
        f"{prefix}{error}",
        code or usual_code,
        headers=headers,
        members=members,
    )


def bad_request(detail: str, code: str = UNDEFINED) -> ApiError:
    """Return a 400."""
    return ApiError(HTTPStatus.BAD_REQUEST, detail, code)


def not_found(detail: str = "") -> ApiError:
    """Return a 404."""
    return ApiError(HTTPStatus.NOT_FOUND, detail)
