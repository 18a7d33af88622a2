# SPDX-License-Identifier: Apache-2.0
"""Errors as clients see them: status, code, text and document (contract page 00, sections 3 and 6)."""

from treeclaim.api.protocol.errors.errors import (
    BAD_VALUE,
    CANNOT_DELETE_PARENT,
    CONCURRENT_UPDATE,
    CONSUMER_EXISTS,
    DEADLINE,
    DUPLICATE_KEY,
    DUPLICATE_NAME,
    HOLD,
    INVENTORY_IN_USE,
    MISSING_VALUE,
    PROVIDER_IN_USE,
    PROVIDER_NOT_FOUND,
    UNDEFINED,
    UNPLACED,
    ApiError,
    api_error,
    bad_request,
    not_found,
)

__all__ = [
    "BAD_VALUE",
    "CANNOT_DELETE_PARENT",
    "CONCURRENT_UPDATE",
    "CONSUMER_EXISTS",
    "DEADLINE",
    "DUPLICATE_KEY",
    "DUPLICATE_NAME",
    "HOLD",
    "INVENTORY_IN_USE",
    "MISSING_VALUE",
    "PROVIDER_IN_USE",
    "PROVIDER_NOT_FOUND",
    "UNDEFINED",
    "UNPLACED",
    "ApiError",
    "api_error",
    "bad_request",
    "not_found",
]
