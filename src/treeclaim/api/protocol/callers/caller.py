# SPDX-License-Identifier: Apache-2.0
"""The caller of a request, as log lines show it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from oslo_context.context import RequestContext

from treeclaim.api.protocol.callers.identity import Identity
from treeclaim.api.protocol.callers.request_ids import GLOBAL_REQUEST_ID, request_id_of
from treeclaim.api.protocol.remembering import remembering_short

IDENTITY_KEY = "treeclaim.identity"
"""Where the caller's identity is left in the WSGI environment, if authentication vouched for it."""

_REMEMBERED, _LONGEST_REMEMBERED = 1_024, 256
"""Callers, and characters of user and project: 256 KiB."""


class Caller(NamedTuple):
    """The caller of a request.

    Attributes:
        request_id: The request's own id.
        global_request_id: The id that the caller gave, for the logs of several services.
        identity: None without authentication, or before it.
    """

    request_id: str
    global_request_id: str | None
    identity: Identity | None

    def context(self) -> dict[str, Any]:
        """Return the caller as oslo.log's formatters want it."""
        return self.logged() | {
            "request_id": self.request_id,
            "global_request_id": self.global_request_id,
        }

    def logged(self) -> dict[str, Any]:
        """Return the same without the ids of the request; nobody may change it."""
        who = self.identity
        return _logged(None, None) if who is None else _logged(who.user_id, who.project_id)


@remembering_short(_REMEMBERED, _LONGEST_REMEMBERED)
def _logged(user_id: str | None, project_id: str | None) -> dict[str, Any]:
    """Return the caller's fields for log lines; oslo.context is too slow to build them each time."""
    context = RequestContext(user_id=user_id, project_id=project_id, overwrite=False)
    return context.get_logging_values()


def caller_of(environment: Mapping[str, Any]) -> Caller:
    """Read the caller from a WSGI environment."""
    return Caller(
        request_id_of(environment),
        environment.get(GLOBAL_REQUEST_ID),
        environment.get(IDENTITY_KEY),
    )
