# SPDX-License-Identifier: Apache-2.0
"""The caller (contract page 05, section 1), and the ids of requests (page 00, section 7)."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

from oslo_context.context import RequestContext

from treeclaim.api.protocol.remembering import remembering_short

_REMEMBERED, _LONGEST_REMEMBERED = 512, 1_024
"""Callers, and characters of all headers of each: half a MiB, and some twenty times that for the
roles they are split into. A usual caller has some 300."""

Values = tuple[str | None, ...]
"""The values of the headers of an identity, in the order of `_HEADERS`."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller.

    Attributes:
        values: What it was read from, by which two identities are told apart.
        user_id: None without authentication.
        project_id: The project of the token.
        roles: Names as they were given.
        system_scope: "all" for a system-scoped token.
        domain_id: The domain of a domain-scoped token.
        user_domain_id, project_domain_id: Domains that the user and the project belong to.
        is_admin_project: False where Keystone says that the project is not the administrators'.
        service_user_id, service_user_domain_id, service_project_id, service_project_domain_id,
        service_roles: The roles of a service token.
    """

    values: Values
    user_id: str | None
    project_id: str | None
    roles: tuple[str, ...]
    system_scope: str | None
    domain_id: str | None
    user_domain_id: str | None
    project_domain_id: str | None
    is_admin_project: bool
    service_user_id: str | None
    service_user_domain_id: str | None
    service_project_id: str | None
    service_project_domain_id: str | None
    service_roles: tuple[str, ...]

    @classmethod
    def of(cls, values: Values) -> Self:
        """Read an identity from the values of its headers."""
        named = dict(zip(_HEADERS, values, strict=True))
        admin = named.pop("is_admin_project")
        roles, service_roles = named.pop("roles"), named.pop("service_roles")
        # An empty scope is none. An empty user or project is one: noauth2 knows an empty token.
        scopes = {name: named.pop(name) or None for name in ("system_scope", "domain_id")}
        return cls(
            values=values,
            roles=_roles(roles),
            service_roles=_roles(service_roles),
            is_admin_project=admin is None or admin.lower() == "true",
            **scopes,
            **named,
        )

    def credentials(self) -> dict[str, Any]:
        """Return the identity as oslo.policy wants it.

        With all names that `oslo_context.RequestContext.to_policy_values` has: a check of a name
        that is missing fails, and a rule that says `not` is then open.
        """
        named = asdict(self)
        del named["values"]
        return named | {"roles": list(self.roles), "service_roles": list(self.service_roles)}


_HEADERS = {
    "user_id": ("X_USER_ID", "X_USER"),
    "project_id": ("X_PROJECT_ID", "X_TENANT_ID", "X_TENANT"),
    "roles": ("X_ROLES", "X_ROLE"),
    "system_scope": ("OPENSTACK_SYSTEM_SCOPE",),
    "domain_id": ("X_DOMAIN_ID",),
    "user_domain_id": ("X_USER_DOMAIN_ID",),
    "project_domain_id": ("X_PROJECT_DOMAIN_ID",),
    "is_admin_project": ("X_IS_ADMIN_PROJECT",),
    "service_user_id": ("X_SERVICE_USER_ID",),
    "service_user_domain_id": ("X_SERVICE_USER_DOMAIN_ID",),
    "service_project_id": ("X_SERVICE_PROJECT_ID",),
    "service_project_domain_id": ("X_SERVICE_PROJECT_DOMAIN_ID",),
    "service_roles": ("X_SERVICE_ROLES",),
}
"""For each attribute of an identity the header it is read from, and what older ones are called."""

_KEYS = tuple(tuple(f"HTTP_{name}" for name in names) for names in _HEADERS.values())
IDENTITY_HEADER_KEYS = tuple(key for keys in _KEYS for key in keys)
"""The keys of the WSGI environment that an identity is read from."""


def identity_of(environment: Mapping[str, Any]) -> Identity:
    """Read the identity from a WSGI environment."""
    return _identity(tuple(map(environment.get, IDENTITY_HEADER_KEYS)))


@remembering_short(_REMEMBERED, _LONGEST_REMEMBERED)
def _identity(values: tuple[Any, ...]) -> Identity:
    """Read it from the values of `IDENTITY_HEADER_KEYS`; of the names of one header the first one counts."""
    given = dict(zip(IDENTITY_HEADER_KEYS, values, strict=True))
    return Identity.of(tuple(_first(given, keys) for keys in _KEYS))


def _first(given: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    for key in keys:
        value = given[key]
        if value is not None:
            return str(value)
    return None


def _roles(header: str | None) -> tuple[str, ...]:
    return tuple(role.strip() for role in (header or "").split(",") if role.strip())


REQUEST_ID = "treeclaim.request_id"
GLOBAL_REQUEST_ID = "treeclaim.global_request_id"
HEADER = "x-openstack-request-id"

_GLOBAL = re.compile(r"req-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}")


def assign_request_id(environment: dict[str, Any]) -> str:
    """Give a request an id of its own; keep the client's as the global one, for logs only."""
    request_id = _new_id()
    environment[REQUEST_ID] = request_id
    given = environment.get("HTTP_X_OPENSTACK_REQUEST_ID", "")
    if _GLOBAL.fullmatch(given):
        environment[GLOBAL_REQUEST_ID] = given
    return request_id


def request_id_of(environment: Mapping[str, Any]) -> str:
    """Return the id that a request was given."""
    return str(environment.get(REQUEST_ID, ""))


def _new_id() -> str:
    """Return an id in the form of a random uuid.

    It is not secret, so its bits are Python's own random numbers, with another seed in each process.
    To ask the kernel for them would let another thread go on before this one.
    """
    digits = f"{random.getrandbits(120):030x}"
    return f"req-{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:18]}-{digits[18:]}"


IDENTITY_KEY = "treeclaim.identity"
"""The key of the caller's identity in the WSGI environment, if authentication vouched for it."""

_MOST_LOGGED, _LONGEST_LOGGED = 1_024, 256
"""Callers, and characters of user and project: 256 KiB."""

_LONGEST_ID = 255


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
        return {
            **self.logged(),
            "request_id": self.request_id,
            "global_request_id": self.global_request_id,
        }

    def logged(self) -> Mapping[str, Any]:
        """Return the same without the ids of the request."""
        who = self.identity
        if who is None:
            return _logged(None, None)
        return _logged(_cut(who.user_id), _cut(who.project_id))


def _cut(text: str | None) -> str | None:
    """Shorten an id that no Keystone has, for a line of the log."""
    return text if text is None or len(text) <= _LONGEST_ID else f"{text[:_LONGEST_ID]}..."


@remembering_short(_MOST_LOGGED, _LONGEST_LOGGED)
def _logged(user_id: str | None, project_id: str | None) -> Mapping[str, Any]:
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
