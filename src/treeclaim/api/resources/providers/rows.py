# SPDX-License-Identifier: Apache-2.0
"""The provider that a path names."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from treeclaim.api.protocol.errors import ApiError, api_error
from treeclaim.api.protocol.operations import Call
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import ProviderGenerationConflictError, ProviderNotFoundError
from treeclaim.store.operations.providers.providers import require_exists


def require_row(forest: Forest, uuid: str) -> int:
    """Return the row of a provider by exactly this uuid.

    Raises:
        ProviderNotFoundError: if there is none.
    """
    row = forest.row_of(uuid)
    if row is None:
        raise ProviderNotFoundError(uuid)
    return row


def json_for_provider(call: Call) -> Any:
    """Return the checked body of a write to the path's provider.

    If the body is refused, a provider that does not exist is reported first. For a good body the
    write itself finds out.

    Raises:
        ProviderNotFoundError: if the body is refused and the provider does not exist.
        ApiError: as `Call.json`.
    """
    try:
        return call.json()
    except ApiError:
        call.services.store.read(require_exists, call.arguments["uuid"])
        raise


@contextmanager
def replacing_a_part() -> Iterator[None]:
    """Tell clients who replace a part of a provider if it has changed.

    Raises:
        ApiError: 409 for another generation.
    """
    try:
        yield
    except ProviderGenerationConflictError as error:
        raise ApiError(
            HTTPStatus.CONFLICT,
            "Resource provider's generation already changed. Please update the generation and "
            "try again.",
            api_error(error).code,
        ) from error
