# SPDX-License-Identifier: Apache-2.0
"""The details of a conflict as members that a program can read (contract page 98, section 6)."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from treeclaim.api.protocol.errors.errors import UNDEFINED, ApiError
from treeclaim.model import errors as model
from treeclaim.model.microversions import ExtensionFeature, Version


def telling(error: ApiError, cause: BaseException | None, version: Version | None) -> ApiError:
    """Return an error with its `conflict`, where the client's version has that.

    Args:
        error: What the client is told.
        cause: What happened, if that is known.
        version: The negotiated version; None if negotiation itself failed.
    """
    if (
        version is None
        or error.status != HTTPStatus.CONFLICT
        or not version.has_extension(ExtensionFeature.ORDER_AND_REPORTS)
    ):
        return error
    while cause is not None:
        conflict = conflict_of(cause)
        if conflict is not None and _is_known(conflict, version):
            code = f"treeclaim.{conflict['kind']}" if error.code == UNDEFINED else error.code
            members = {**error.members, "conflict": conflict}
            return ApiError(
                error.status, error.detail, code, headers=error.headers, members=members
            )
        cause = cause.__cause__
    return error


def _is_known(conflict: Mapping[str, Any], version: Version) -> bool:
    """Tell whether clients of a version know the kind of a conflict."""
    return version.brings(_LATER_KINDS.get(conflict["kind"], ExtensionFeature.ORDER_AND_REPORTS))


_LATER_KINDS = {"condition": ExtensionFeature.DEVICES}
"""What brought kinds that came later."""


def conflict_of(error: BaseException) -> Mapping[str, Any] | None:
    """Return the kind of a conflict and its details; None for any other error."""
    match error:
        case model.CapacityExceededError():
            more = {"requested": error.requested, "free": error.free}
            return _of_class("over_capacity", error.provider_uuid, error.resource_class) | more
        case model.UnitConstraintError():
            found = _of_class("amount_unit", error.provider_uuid, error.resource_class)
            return found | {
                "requested": error.requested,
                "min_unit": error.min_unit,
                "max_unit": error.max_unit,
                "step_size": error.step_size,
            }
        case model.InventoryMissingError():
            return _of_class("no_inventory", error.provider_uuid, error.resource_classes[0])
        case model.InventoryExistsError():
            return _of_class("inventory_exists", error.provider_uuid, error.resource_class)
        case model.InventoryInUseError():
            found = _of_class("inventory_in_use", error.provider_uuid, error.resource_classes[0])
            return found | {"used": error.used}
    return _of_consumer_or_generation(error)


def _of_class(kind: str, provider: str, resource_class: str) -> dict[str, Any]:
    return {"kind": kind, "provider": provider, "resource_class": resource_class}


def _of_consumer_or_generation(error: BaseException) -> dict[str, Any] | None:
    match error:
        case model.ProviderGenerationConflictError():
            return {
                "kind": "provider_generation",
                "uuid": error.uuid,
                "expected": error.actual,
                "given": error.given,
            }
        case model.ConsumerGenerationConflictError():
            return {
                "kind": "consumer_generation",
                "uuid": error.consumer_uuid,
                "expected": error.expected,
                "given": error.given,
            }
        case model.ConditionedError():
            return {
                "kind": "condition",
                "provider": error.provider_uuid,
                "key": error.key,
                "reason": error.reason,
            }
        case model.HoldRefusedError():
            return {"kind": "hold", "uuid": error.uuid, "reason": error.reason}
        case model.ConcurrentChangeError():
            return {"kind": "retries_exhausted"}
    return None
