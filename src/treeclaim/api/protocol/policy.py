# SPDX-License-Identifier: Apache-2.0
"""Who may do what: oslo.policy with the rules of contract page 05, section 2."""

import time
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg
from oslo_policy import policy as oslo_policy

from treeclaim.api.protocol.identity import Identity

_DEPRECATED_SINCE = "2023.1"
_REASON = (
    "The service role has been introduced for calls between services; the admin role alone "
    "stays valid unless [oslo_policy]/enforce_new_defaults is set."
)

ADMIN_OR_SERVICE = "rule:admin_or_service_api"
ADMIN_OR_READER_OR_SERVICE = "rule:admin_or_project_reader_or_service_api"
SERVICE = "rule:service_api"


def _was_admin(name: str) -> oslo_policy.DeprecatedRule:
    return oslo_policy.DeprecatedRule(
        name=name,
        check_str="role:admin",
        deprecated_reason=_REASON,
        deprecated_since=_DEPRECATED_SINCE,
    )


def _base_rules() -> list[oslo_policy.RuleDefault]:
    return [
        oslo_policy.RuleDefault("admin_api", "role:admin", "Administrators."),
        oslo_policy.RuleDefault(
            "service_api",
            "role:service",
            "Other services.",
            deprecated_rule=_was_admin("rule:admin_api"),
        ),
        oslo_policy.RuleDefault(
            "admin_or_service_api",
            "role:admin or role:service",
            "Administrators and other services.",
            deprecated_rule=_was_admin("rule:admin_api"),
        ),
        oslo_policy.RuleDefault(
            "project_reader_api",
            "role:reader and project_id:%(project_id)s",
            "Readers of the project in question.",
            deprecated_rule=_was_admin("rule:admin_api"),
        ),
        oslo_policy.RuleDefault(
            "admin_or_project_reader_or_service_api",
            "role:admin or rule:project_reader_api or role:service",
            "Administrators, readers of the project in question, and other services.",
            deprecated_rule=_was_admin("rule:admin_api"),
        ),
    ]


def list_rules() -> list[oslo_policy.RuleDefault]:
    """Return all rules with their defaults, for the oslopolicy tools too."""
    # Operations import handlers, and these import this module's class.
    from treeclaim.api.routes import OPERATIONS  # noqa: PLC0415

    operations: dict[str, list[Any]] = {}
    for operation in OPERATIONS:
        if operation.policy is not None:
            operations.setdefault(operation.policy, []).append(operation)
    documented = [
        oslo_policy.DocumentedRuleDefault(
            name=name,
            check_str=_DEFAULTS.get(name, ADMIN_OR_SERVICE),
            description=found[0].summary,
            operations=[{"method": one.method, "path": one.path} for one in found],
            scope_types=["project"],
        )
        for name, found in operations.items()
    ]
    return _base_rules() + documented


_DEFAULTS = {
    "placement:usages": ADMIN_OR_READER_OR_SERVICE,
    "placement:reshaper:reshape": SERVICE,
}


def make_enforcer(configuration: cfg.ConfigOpts) -> oslo_policy.Enforcer:
    """Create an enforcer with all rules, which follows the operator's files."""
    enforcer = oslo_policy.Enforcer(configuration)
    enforcer.suppress_deprecation_warnings = True
    enforcer.suppress_default_change_warnings = True
    enforcer.register_defaults(list_rules())
    return enforcer


def enforcer_for_tools() -> oslo_policy.Enforcer:
    """Return an enforcer for the oslopolicy command line tools."""
    configuration = cfg.ConfigOpts()
    configuration([], project="placement")
    return make_enforcer(configuration)


_MOST_REMEMBERED = 10_000
_LOOK_EVERY = 1.0
"""Seconds after which a changed policy file is noticed."""


class Policy:
    """Decides, and remembers its decisions until a policy file changes."""

    def __init__(self, enforcer: oslo_policy.Enforcer) -> None:
        self._enforcer = enforcer
        self._rules: object = None
        self._look_at = 0.0
        self._known: dict[tuple[object, ...], bool] = {}

    def allows(self, rule: str, identity: Identity, target: Mapping[str, str | None]) -> bool:
        """Tell whether a rule lets the caller act on a target."""
        self._follow_files()
        key = (rule, identity, *sorted(target.items()))
        if key not in self._known:
            if len(self._known) > _MOST_REMEMBERED:
                self._known.clear()
            self._known[key] = bool(
                self._enforcer.authorize(
                    rule, dict(target), identity.credentials(), do_raise=False
                )
            )
        return self._known[key]

    def _follow_files(self) -> None:
        """Look for changed policy files, but not at each request: it costs more than a search."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK_EVERY
        self._enforcer.load_rules()
        if self._enforcer.rules is not self._rules:
            self._rules, self._known = self._enforcer.rules, {}
