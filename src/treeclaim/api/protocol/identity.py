# SPDX-License-Identifier: Apache-2.0
"""Who calls: read from the headers that the authentication layer set (contract page 05, §1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller.

    Attributes:
        user_id: None if nobody was authenticated.
        project_id: The project of the token.
        roles: Names as they were given.
        system_scope: "all" for a system-scoped token.
        domain_id: The domain of a domain-scoped token.
        service_user_id, service_project_id, service_roles: Of a service token.
    """

    user_id: str | None
    project_id: str | None
    roles: tuple[str, ...]
    system_scope: str | None
    domain_id: str | None
    service_user_id: str | None
    service_project_id: str | None
    service_roles: tuple[str, ...]

    def credentials(self) -> dict[str, Any]:
        """Return the identity as oslo.policy wants it."""
        return {
            "user_id": self.user_id,
            "project_id": self.project_id,
            "roles": list(self.roles),
            "system_scope": self.system_scope,
            "domain_id": self.domain_id,
            "service_user_id": self.service_user_id,
            "service_project_id": self.service_project_id,
            "service_roles": list(self.service_roles),
        }


_HEADERS = (
    ("X_USER_ID", "X_USER"),
    ("X_PROJECT_ID", "X_TENANT_ID", "X_TENANT"),
    ("X_ROLES", "X_ROLE"),
    ("OPENSTACK_SYSTEM_SCOPE",),
    ("X_DOMAIN_ID",),
    ("X_SERVICE_USER_ID",),
    ("X_SERVICE_PROJECT_ID",),
    ("X_SERVICE_ROLES",),
)
"""For each attribute of an identity the header it is read from, and what older ones are called."""

_KEYS = tuple(tuple(f"HTTP_{name}" for name in names) for names in _HEADERS)


def identity_of(environment: Mapping[str, Any]) -> Identity:
    """Read the identity from a WSGI environment."""
    return _identity(tuple(_first(environment, keys) for keys in _KEYS))


@lru_cache(maxsize=1024)
def _identity(headers: tuple[str | None, ...]) -> Identity:
    """Return the identity that some headers, in the order of `_HEADERS`, tell of."""
    user, project, roles, scope, domain, service_user, service_project, service_roles = headers
    return Identity(
        user_id=user,
        project_id=project,
        roles=_roles(roles),
        system_scope=scope or None,
        domain_id=domain or None,
        service_user_id=service_user,
        service_project_id=service_project,
        service_roles=_roles(service_roles),
    )


def _first(environment: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    for key in keys:
        value = environment.get(key)
        if value is not None:
            return str(value)
    return None


def _roles(header: str | None) -> tuple[str, ...]:
    return tuple(one.strip() for one in (header or "").split(",") if one.strip())
