# SPDX-License-Identifier: Apache-2.0
"""The policy rules of contract page 05, section 2, derived from the operations."""

from typing import Any

from oslo_config import cfg
from oslo_policy import policy as oslo_policy

from treeclaim.api.protocol.policy import make_enforcer
from treeclaim.api.routes import OPERATIONS

_DEPRECATED_SINCE = "2023.1"
_REASON = (
    "Calls between services have the service role. The admin role alone remains valid unless "
    "[oslo_policy]/enforce_new_defaults is set."
)

ADMIN_OR_SERVICE = "rule:admin_or_service_api"
ADMIN_OR_READER_OR_SERVICE = "rule:admin_or_project_reader_or_service_api"
SERVICE = "rule:service_api"
ADMIN = "rule:admin_api"


_BASE_RULES = (
    ("service_api", "role:service", "Other services."),
    (
        "admin_or_service_api",
        "role:admin or role:service",
        "Administrators and other services.",
    ),
    (
        "project_reader_api",
        "role:reader and project_id:%(project_id)s",
        "Readers of the project in question.",
    ),
    (
        "admin_or_project_reader_or_service_api",
        "role:admin or rule:project_reader_api or role:service",
        "Administrators, readers of the project in question, and other services.",
    ),
)
"""Rules that replace `admin_api`: name, check and description."""


def _make_base_rules() -> list[oslo_policy.RuleDefault]:
    rules = [oslo_policy.RuleDefault("admin_api", "role:admin", "Administrators.")]
    for name, check, description in _BASE_RULES:
        was_admin = oslo_policy.DeprecatedRule(
            name=ADMIN,
            check_str="role:admin",
            deprecated_reason=_REASON,
            deprecated_since=_DEPRECATED_SINCE,
        )
        rules.append(oslo_policy.RuleDefault(name, check, description, deprecated_rule=was_admin))
    return rules


def list_rules() -> list[oslo_policy.RuleDefault]:
    """Return all rules with their defaults; an entry point of the oslopolicy tools."""
    operations: dict[str, list[Any]] = {}
    for operation in OPERATIONS:
        if operation.policy is not None:
            operations.setdefault(operation.policy, []).append(operation)
    operation_rules = [
        oslo_policy.DocumentedRuleDefault(
            name=name,
            check_str=_CHECKS.get(name, ADMIN_OR_SERVICE),
            description=declarations[0].summary,
            operations=[
                {"method": operation.method, "path": operation.path} for operation in declarations
            ],
            scope_types=["project"],
        )
        for name, declarations in operations.items()
    ]
    member_rules = [
        oslo_policy.DocumentedRuleDefault(
            name=name,
            check_str="rule:placement:allocations:manage",
            description=description,
            operations=[{"method": method, "path": path} for method, path in routes],
            scope_types=["project"],
        )
        for name, (description, routes) in _MEMBER_RULES.items()
    ]
    return _make_base_rules() + operation_rules + member_rules


_MEMBER_RULES = {
    "treeclaim:holds:draw": (
        "Search with the amounts of holds as free, or draw from holds: the member from_holds.",
        (
            ("GET", "/allocation_candidates"),
            ("GET", "/allocation_candidates/explain"),
            ("POST", "/treeclaim/candidates"),
            ("POST", "/treeclaim/capacity"),
            ("POST", "/treeclaim/placements"),
            ("PUT", "/allocations/{consumer_uuid}"),
            ("POST", "/allocations"),
        ),
    ),
}
"""Rules of single parameters and members, in addition to the rule of the operation."""


_CHECKS = {
    "treeclaim:placements:create": "rule:placement:allocations:manage",
    "treeclaim:holds:manage": "rule:placement:allocations:manage",
    "treeclaim:requests:update": "rule:placement:allocations:manage",
    "treeclaim:holds:list": "rule:placement:allocations:list",
    "placement:usages": ADMIN_OR_READER_OR_SERVICE,
    "placement:reshaper:reshape": SERVICE,
    "treeclaim:audit:list": ADMIN,
    "treeclaim:audit:repair": ADMIN,
}


def enforcer_for_tools() -> oslo_policy.Enforcer:
    """Return an enforcer that has read no file; an entry point of the oslopolicy tools."""
    configuration = cfg.ConfigOpts()
    configuration([], project="placement")
    return make_enforcer(configuration, list_rules())
