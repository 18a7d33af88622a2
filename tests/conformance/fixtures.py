# SPDX-License-Identifier: Apache-2.0
"""The gabbi fixtures that suites can name: one class a configuration, some with a world in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tests.conformance.services import Application, FreshService
from tests.conformance.wide_hosts import (
    BreadthFirstCappedHosts,
    BreadthFirstHosts,
    BreadthFirstTightlyCappedHosts,
    DepthFirstCappedHosts,
    OneUnitChildren,
    OneUnitChildrenCappedAtHundred,
    OneUnitChildrenCappedAtTen,
    RandomizedHosts,
    UncappedHosts,
)
from treeclaim.api.routes import OPERATIONS

__all__ = [
    "BreadthFirstCappedHosts",
    "BreadthFirstHosts",
    "BreadthFirstTightlyCappedHosts",
    "CrossOriginService",
    "DepthFirstCappedHosts",
    "ExtensionPolicyService",
    "FreshService",
    "InProcessService",
    "KeystoneService",
    "MountedService",
    "NamedIncompleteService",
    "NewDefaultsService",
    "OldDefaultsService",
    "OneUnitChildren",
    "OneUnitChildrenCappedAtHundred",
    "OneUnitChildrenCappedAtTen",
    "OpenPolicyService",
    "ProxyHeadersService",
    "RandomizedHosts",
    "TraitsOnlyPolicyService",
    "UncappedHosts",
]

PREFIX = "/placement"


class OldDefaultsService(FreshService):
    """The deprecated policy defaults stay in force."""

    options: ClassVar[Mapping[str, str]] = {"oslo_policy.enforce_new_defaults": "false"}


class NewDefaultsService(FreshService):
    """Only the new policy defaults are in force."""

    options: ClassVar[Mapping[str, str]] = {"oslo_policy.enforce_new_defaults": "true"}


class OpenPolicyService(FreshService):
    """A policy file that opens every operation to every caller."""

    def more_options(self) -> Mapping[str, str]:
        """Name the policy file."""
        policy = Path(self.folder.name) / "policy.yaml"
        rules = sorted({operation.policy for operation in OPERATIONS if operation.policy})
        policy.write_text("".join(f'"{rule}": "@"\n' for rule in rules))
        return {"oslo_policy.policy_file": str(policy)}


class ExtensionPolicyService(FreshService):
    """A policy file that gives each rule of the extension to a role of its own."""

    roles: ClassVar[Mapping[str, str]] = {
        "placement:resource_providers:create": "maker",
        "placement:resource_providers:update": "mover",
        "placement:resource_providers:show": "shower",
        "placement:resource_providers:traits:update": "labeller",
        "placement:resource_providers:usages": "accountant",
        "placement:allocation_candidates:list": "asker",
        "treeclaim:attributes:update": "describer",
        "treeclaim:conditions:update": "closer",
        "treeclaim:holds:manage": "holder",
        "treeclaim:holds:draw": "drawer",
        "treeclaim:holds:list": "lister",
        "treeclaim:requests:update": "keeper",
        "treeclaim:placements:create": "placer",
    }

    def more_options(self) -> Mapping[str, str]:
        """Name the policy file."""
        policy = Path(self.folder.name) / "policy.yaml"
        lines = (f'"{rule}": "role:{role}"\n' for rule, role in self.roles.items())
        policy.write_text("".join(lines))
        return {"oslo_policy.policy_file": str(policy)}


class TraitsOnlyPolicyService(FreshService):
    """A policy file that overrides single operation rules and leaves the others."""

    def more_options(self) -> Mapping[str, str]:
        """Name the policy file."""
        policy = Path(self.folder.name) / "policy.yaml"
        policy.write_text(
            '"placement:traits:list": "role:curious"\n"placement:resource_classes:list": "!"\n'
        )
        return {"oslo_policy.policy_file": str(policy)}


class KeystoneService(FreshService):
    """Tokens are validated by Keystone; none is running at the configured address."""

    options: ClassVar[Mapping[str, str]] = {
        "api.auth_strategy": "keystone",
        "keystone_authtoken.www_authenticate_uri": "http://identity.example/v3",
        "keystone_authtoken.auth_url": "http://127.0.0.1:1/v3",
        "keystone_authtoken.auth_type": "password",
        "keystone_authtoken.username": "placement",
        "keystone_authtoken.password": "secret",
        "keystone_authtoken.project_name": "service",
        "keystone_authtoken.user_domain_name": "Default",
        "keystone_authtoken.project_domain_name": "Default",
    }


class CrossOriginService(FreshService):
    """Browsers at two origins may use the service."""

    options: ClassVar[Mapping[str, str]] = {
        "cors.allowed_origin": "http://dashboard.example,https://other.example:8443"
    }


class ProxyHeadersService(FreshService):
    """The service believes what a proxy says of the original request."""

    options: ClassVar[Mapping[str, str]] = {"oslo_middleware.enable_proxy_headers_parsing": "true"}


class NamedIncompleteService(FreshService):
    """Consumers written without project and user get configured names."""

    options: ClassVar[Mapping[str, str]] = {
        "placement.incomplete_consumer_project_id": "lost-project",
        "placement.incomplete_consumer_user_id": "lost-user",
    }


class MountedService(FreshService):
    """The service lives below a prefix; a client asks for `/placement/...`."""

    only_in_process: ClassVar[bool] = True

    def mount(self, application: Application) -> Application:
        """Take the prefix off, as a web server does."""

        def mounted(
            environ: dict[str, Any], start_response: Callable[..., Any]
        ) -> Iterable[bytes]:
            environ["SCRIPT_NAME"] = PREFIX
            environ["PATH_INFO"] = environ["PATH_INFO"].removeprefix(PREFIX)
            return application(environ, start_response)

        return mounted


class InProcessService(FreshService):
    """A service that no web server stands before."""

    only_in_process: ClassVar[bool] = True
