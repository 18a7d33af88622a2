# SPDX-License-Identifier: Apache-2.0
"""Who calls: read from the headers that the authentication layer set (contract page 05, §1)."""

from collections.abc import Mapping
from dataclasses import dataclass
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


def identity_of(environment: Mapping[str, Any]) -> Identity:
    """Read the identity from a WSGI environment."""
    return Identity(
        user_id=_first(environment, "X_USER_ID", "X_USER"),
        project_id=_first(environment, "X_PROJECT_ID", "X_TENANT_ID", "X_TENANT"),
        roles=_roles(_first(environment, "X_ROLES", "X_ROLE")),
        system_scope=_first(environment, "OPENSTACK_SYSTEM_SCOPE") or None,
        domain_id=_first(environment, "X_DOMAIN_ID") or None,
        service_user_id=_first(environment, "X_SERVICE_USER_ID"),
        service_project_id=_first(environment, "X_SERVICE_PROJECT_ID"),
        service_roles=_roles(_first(environment, "X_SERVICE_ROLES")),
    )


def _first(environment: Mapping[str, Any], *names: str) -> str | None:
    for name in names:
        value = environment.get(f"HTTP_{name}")
        if value is not None:
            return str(value)
    return None


def _roles(header: str | None) -> tuple[str, ...]:
    return tuple(one.strip() for one in (header or "").split(",") if one.strip())
