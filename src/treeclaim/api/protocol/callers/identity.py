# SPDX-License-Identifier: Apache-2.0
"""Who calls: read from the headers that the authentication layer set (contract page 05, §1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

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
        service_roles: Of a service token.
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
        return {
            "user_id": self.user_id,
            "user_domain_id": self.user_domain_id,
            "project_id": self.project_id,
            "project_domain_id": self.project_domain_id,
            "roles": list(self.roles),
            "system_scope": self.system_scope,
            "domain_id": self.domain_id,
            "is_admin_project": self.is_admin_project,
            "service_user_id": self.service_user_id,
            "service_user_domain_id": self.service_user_domain_id,
            "service_project_id": self.service_project_id,
            "service_project_domain_id": self.service_project_domain_id,
            "service_roles": list(self.service_roles),
        }


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
_ALL_KEYS = tuple(key for keys in _KEYS for key in keys)


def identity_of(environment: Mapping[str, Any]) -> Identity:
    """Read the identity from a WSGI environment."""
    return _identity(tuple(map(environment.get, _ALL_KEYS)))


@remembering_short(_REMEMBERED, _LONGEST_REMEMBERED)
def _identity(found: tuple[Any, ...]) -> Identity:
    """Read it from the values of `_ALL_KEYS`; of the names of one header the first one counts."""
    given = dict(zip(_ALL_KEYS, found, strict=True))
    return Identity.of(tuple(_first(given, keys) for keys in _KEYS))


def _first(given: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    for key in keys:
        value = given[key]
        if value is not None:
            return str(value)
    return None


def _roles(header: str | None) -> tuple[str, ...]:
    return tuple(role.strip() for role in (header or "").split(",") if role.strip())
