# SPDX-License-Identifier: Apache-2.0
"""`treeclaim config …` and `treeclaim policy …`."""

import argparse
from collections.abc import Sequence
from typing import Any

from keystoneauth1 import loading
from keystoneauth1.exceptions import NoMatchingPlugin
from keystonemiddleware.opts import list_auth_token_opts
from oslo_config import cfg, generator
from oslo_policy import generator as policy_generator

from treeclaim.cli.output import CommandError, convert_failures, format_count, print_lines, warn
from treeclaim.cli.service.database import load_configuration
from treeclaim.cli.service.findings import (
    CHECKS,
    ConfigFinding,
    OptionPlaces,
    find_error_place,
    find_ineffective_options,
    find_unknown_options,
)
from treeclaim.config import (
    PROJECT,
    Configuration,
    ConfigurationError,
    OptionGroups,
    all_options,
    effective_options,
    require_valid_values,
)

_KEYSTONE = "keystone_authtoken"
_NAMESPACES = (
    "placement.conf",
    "keystonemiddleware.auth_token",
    "oslo.log",
    "oslo.middleware.cors",
    "oslo.middleware.http_proxy_to_wsgi",
    "oslo.policy",
)


def print_config_sample(_options: argparse.Namespace) -> None:
    """Print a commented placement.conf."""
    conf = cfg.ConfigOpts()
    generator.register_cli_opts(conf)
    arguments = [part for namespace in _NAMESPACES for part in ("--namespace", namespace)]
    conf(arguments, project=PROJECT, default_config_files=[], default_config_dirs=[])
    generator.generate(conf)


def print_policy_sample(_options: argparse.Namespace) -> None:
    """Print a commented policy.yaml."""
    # Without arguments the generator reads the command line of the process.
    policy_generator.generate_sample(["--namespace", PROJECT], conf=cfg.ConfigOpts())


def check(options: argparse.Namespace) -> int:
    """Print the options in effect and the findings; return 1 for errors."""
    places = OptionPlaces(options.config_files, options.config_dirs)
    try:
        configuration = load_configuration(options)
        keystone = _register_keystone_options(configuration.options)
    except CommandError as error:
        unknown_options = find_unknown_options(
            all_options(_list_keystone_options("password")), places
        )
        errors = (
            ConfigFinding(True, find_error_place(line, places), line) for line in error.lines
        )
        return _report([*unknown_options, *errors])
    groups = all_options(keystone)
    _print_options(configuration, keystone, places, with_defaults=options.all)
    findings = [*find_unknown_options(groups, places), *find_ineffective_options(groups, places)]
    for check_part in CHECKS:
        findings += check_part(configuration, places)
    return _report(findings)


def _report(findings: Sequence[ConfigFinding]) -> int:
    # If both streams are one, the options in effect must precede the findings.
    print_lines(flush=True)
    warn(*map(str, findings))
    errors = sum(finding.is_error for finding in findings)
    if errors:
        warn(f"The configuration cannot be used: {format_count(errors, 'error')}.")
        return 1
    look = f"; look at the {format_count(len(findings), 'warning')}" if findings else ""
    warn(f"The configuration can be used{look}.")
    return 0


def _print_options(
    configuration: Configuration,
    keystone: OptionGroups,
    places: OptionPlaces,
    *,
    with_defaults: bool,
) -> None:
    print_lines("# Files: " + (", ".join(configuration.options.config_file or []) or "none"))
    for option in effective_options(configuration.options, keystone):
        if option.is_default and not with_defaults:
            continue
        group, _, name = option.name.removeprefix("[").partition("]/")
        place = None if option.is_default else places.find(group, name)
        print_lines(f"{option.name} = {option.value}  # {place or option.source}")


def _list_keystone_options(plugin: str | None) -> OptionGroups:
    groups: list[Any] = [
        *list_auth_token_opts(),  # type: ignore[no-untyped-call]
        (_KEYSTONE, loading.get_auth_common_conf_options()),
    ]
    if plugin is not None:
        groups.append((_KEYSTONE, loading.get_auth_plugin_conf_options(plugin)))
    return groups


def _register_keystone_options(options: cfg.ConfigOpts) -> OptionGroups:
    """Register, validate and return the options of keystonemiddleware and of its authentication plugin."""
    _register(options, _list_keystone_options(None))
    with convert_failures(f"[{_KEYSTONE}]/auth_type", (NoMatchingPlugin,)):
        groups = _list_keystone_options(options[_KEYSTONE].auth_type)
    _register(options, groups)
    return groups


def _register(options: cfg.ConfigOpts, groups: OptionGroups) -> None:
    for group, group_options in groups:
        options.register_opts(group_options, group=group)
    try:
        require_valid_values(options)
    except ConfigurationError as error:
        raise CommandError(*error.lines) from error
