# SPDX-License-Identifier: Apache-2.0
"""`treeclaim config …` and `treeclaim policy …`: what can be configured, and what is."""

import argparse
import sys
from typing import Any

from keystoneauth1 import loading
from keystonemiddleware.opts import list_auth_token_opts
from oslo_config import cfg, generator
from oslo_policy import generator as policy_generator

from treeclaim.api.policy_rules import load_policy
from treeclaim.cli.configuration import add_config_options, configuration_of
from treeclaim.cli.output import CommandError
from treeclaim.config import PROJECT, Configuration, OptionGroups, effective_options
from treeclaim.model.errors import PolicyFileError

_KEYSTONE = "keystone_authtoken"
_NAMESPACES = (
    "placement.conf",
    "keystonemiddleware.auth_token",
    "oslo.log",
    "oslo.middleware.cors",
    "oslo.middleware.http_proxy_to_wsgi",
    "oslo.policy",
)


def add_to(commands: Any) -> None:
    """Add the commands and their parts."""
    config = commands.add_parser("config", help="show what can be configured, and what is")
    parts = config.add_subparsers(title="commands", metavar="COMMAND", required=True)
    sample = parts.add_parser("sample", help="print a commented placement.conf")
    sample.set_defaults(run=_sample)
    check = parts.add_parser("check", help="print what is effective, and from where")
    check.add_argument("--all", action="store_true", help="print default values too")
    add_config_options(check)
    check.set_defaults(run=_check)
    policy = commands.add_parser("policy", help="show who may do what")
    parts = policy.add_subparsers(title="commands", metavar="COMMAND", required=True)
    sample = parts.add_parser("sample", help="print a commented policy.yaml")
    sample.set_defaults(run=_policy_sample)


def _sample(_options: argparse.Namespace) -> int:
    options = cfg.ConfigOpts()
    generator.register_cli_opts(options)
    wanted = [part for one in _NAMESPACES for part in ("--namespace", one)]
    options(wanted, project=PROJECT, default_config_files=[], default_config_dirs=[])
    generator.generate(options, output_file=sys.stdout)
    return 0


def _policy_sample(_options: argparse.Namespace) -> int:
    # The generator reads the command line of the process where it is given none.
    policy_generator.generate_sample(["--namespace", PROJECT], conf=cfg.ConfigOpts())
    return 0


def _check(options: argparse.Namespace) -> int:
    configuration = configuration_of(options)
    _print_options(configuration, with_defaults=options.all)
    try:
        _, findings = load_policy(configuration.options)
    except PolicyFileError as error:
        raise CommandError(f"[oslo_policy]/policy_file: {error}") from error
    if findings.unknown:
        raise CommandError("[oslo_policy]/policy_file: " + "; ".join(findings.unknown))
    return 0


def _print_options(configuration: Configuration, *, with_defaults: bool) -> None:
    print("# Files: " + (", ".join(configuration.options.config_file or []) or "none"))
    for one in effective_options(configuration.options, _keystone_options(configuration)):
        if with_defaults or not one.is_default:
            print(f"{one.name} = {one.value}  # {one.source}")


def _keystone_options(configuration: Configuration) -> OptionGroups:
    """Return the options of keystonemiddleware, and of the way it authenticates itself."""
    own: OptionGroups = list_auth_token_opts()  # type: ignore[no-untyped-call]
    options = configuration.options
    options.register_opts(loading.get_auth_common_conf_options(), group=_KEYSTONE)
    plugin = options[_KEYSTONE].auth_type
    if plugin is None:
        return own
    return [*own, (_KEYSTONE, loading.get_auth_plugin_conf_options(plugin))]
