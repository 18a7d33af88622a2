# SPDX-License-Identifier: Apache-2.0
"""The provider that a path names."""

from treeclaim.api.protocol.operations import Call
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import ProviderNotFoundError


def require_row(forest: Forest, uuid: str) -> int:
    """Return the row of a provider by exactly this uuid.

    Raises:
        ProviderNotFoundError: if there is none.
    """
    row = forest.row_of(uuid)
    if row is None:
        raise ProviderNotFoundError(uuid)
    return row


def require_provider(call: Call) -> None:
    """Check that the path's provider exists, where that comes before the body is looked at.

    Raises:
        ProviderNotFoundError: if it does not.
    """
    with call.services.replica.current() as forest:
        require_row(forest, call.arguments["uuid"])
