# SPDX-License-Identifier: Apache-2.0
"""Identities of callers (contract page 05, section 1), and ids of requests (page 00, section 7)."""

import random
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from oslo_context.context import RequestContext

from treeclaim.api.protocol.short_cache import cache_short

_HEADERS = (
    "USER_ID USER PROJECT_ID TENANT_ID TENANT ROLES ROLE DOMAIN_ID USER_DOMAIN_ID PROJECT_DOMAIN_ID "
    "IS_ADMIN_PROJECT SERVICE_USER_ID SERVICE_USER_DOMAIN_ID SERVICE_PROJECT_ID "
    "SERVICE_PROJECT_DOMAIN_ID SERVICE_ROLES"
)
_SCOPES = ("HTTP_OPENSTACK_SYSTEM_SCOPE", "HTTP_X_DOMAIN_ID")

IDENTITY_HEADER_KEYS = (*(f"HTTP_X_{name}" for name in _HEADERS.split()), _SCOPES[0])
"""The keys of the WSGI environment from which oslo.context reads an identity."""

Values = tuple[str | None, ...]
"""The values of `IDENTITY_HEADER_KEYS`; None for an absent header."""


class Identity(NamedTuple):
    """A caller.

    Attributes:
        values: Values of the identity headers.
        user_id: None without authentication.
        project_id: The project of the token.
        system_scope: "all" for a system-scoped token.
    """

    values: Values
    user_id: str | None
    project_id: str | None
    system_scope: str | None


def read_identity(environment: Mapping[str, Any]) -> Identity:
    """Read the identity from a WSGI environment."""
    return _make_identity(tuple(map(environment.get, IDENTITY_HEADER_KEYS)))


@cache_short(512)
def _make_identity(values: Values) -> Identity:
    context = _make_context(values)
    return Identity(values, context.user_id, context.project_id, context.system_scope)


def make_policy_credentials(values: Values) -> dict[str, Any]:
    """Return the credentials of an identity for oslo.policy.

    They contain all names of oslo.context: a check of a missing name fails, which would satisfy a rule with `not`.
    """
    return dict(_make_context(values).to_policy_values())


def _make_context(values: Values) -> RequestContext:
    pairs = zip(IDENTITY_HEADER_KEYS, values, strict=True)
    # An empty scope counts as absent. An empty user or project is valid, as noauth2 accepts an empty token.
    environment = {
        key: value for key, value in pairs if value is not None and (value or key not in _SCOPES)
    }
    return RequestContext.from_environ(environment, overwrite=False)


REQUEST_ID = "treeclaim.request_id"
GLOBAL_REQUEST_ID = "treeclaim.global_request_id"
REQUEST_ID_HEADER = "x-openstack-request-id"

_GLOBAL_ID = re.compile(r"req-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}")


def assign_request_id(environment: dict[str, Any]) -> str:
    """Assign a new id to a request; store the client's id as the global id, for logs only."""
    # An id need not be secret: `uuid4` takes four times as long, and reads from the kernel, which yields to other threads.
    digits = f"{random.getrandbits(120):030x}"
    request_id = f"req-{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:18]}-{digits[18:]}"
    environment[REQUEST_ID] = request_id
    client_request_id = environment.get("HTTP_X_OPENSTACK_REQUEST_ID", "")
    if _GLOBAL_ID.fullmatch(client_request_id):
        environment[GLOBAL_REQUEST_ID] = client_request_id
    return request_id


def read_request_id(environment: Mapping[str, Any]) -> str:
    """Return the id of a request; empty without one."""
    return str(environment.get(REQUEST_ID, ""))


IDENTITY_KEY = "treeclaim.identity"
"""The key of the authenticated identity in the WSGI environment."""

_LONGEST_ID = 255


def make_log_fields(environment: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the caller of a request as fields of oslo.log's formatters."""
    identity: Identity | None = environment.get(IDENTITY_KEY)
    if identity is None:
        return _make_log_fields(None, None)
    return _make_log_fields(_shorten(identity.user_id), _shorten(identity.project_id))


def _shorten(text: str | None) -> str | None:
    """Shorten an id that is longer than Keystone's for a log line."""
    return text if text is None or len(text) <= _LONGEST_ID else f"{text[:_LONGEST_ID]}..."


@cache_short(1_024, 256)
def _make_log_fields(user_id: str | None, project_id: str | None) -> Mapping[str, Any]:
    # oslo.context is too slow to build the fields for each log line.
    context = RequestContext(user_id=user_id, project_id=project_id, overwrite=False)
    return context.get_logging_values()
