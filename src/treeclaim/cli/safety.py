# SPDX-License-Identifier: Apache-2.0
"""What `treeclaim serve` refuses to start with, because it would be open to others or fail later."""

import ipaddress

from treeclaim.api.policy_rules import load_policy
from treeclaim.cli.output import CommandError
from treeclaim.config import Configuration
from treeclaim.model.errors import PolicyFileError

ALLOW_NOAUTH2 = "--allow-noauth2"
"""The switch by which somebody takes the responsibility."""


def require_authentication(configuration: Configuration, host: str, *, allowed: bool) -> None:
    """Refuse to believe callers from other machines, unless that is explicitly allowed.

    Args:
        configuration: What is configured.
        host: Name or address to listen on.
        allowed: Whether the switch was given.

    Raises:
        CommandError: where `[api]/auth_strategy` is noauth2, and the address is not loopback.
    """
    if configuration.auth_strategy != "noauth2" or allowed or _is_loopback(host):
        return
    raise CommandError(
        "[api]/auth_strategy is noauth2, which believes every caller; it listens on addresses of "
        f"this machine alone (127.0.0.1, ::1, localhost), not on {host}. Use keystone, or "
        f"{ALLOW_NOAUTH2} where no one else can reach that address."
    )


def require_policy(configuration: Configuration) -> None:
    """Find out in the first process what would make every worker fail.

    Raises:
        CommandError: if a policy file cannot be understood; names file and line.
    """
    try:
        load_policy(configuration.options)
    except PolicyFileError as error:
        raise CommandError(f"[oslo_policy]/policy_file: {error}") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
