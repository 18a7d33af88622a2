# SPDX-License-Identifier: Apache-2.0
"""Effective options: the value of each, and its source."""

from collections.abc import Sequence
from dataclasses import dataclass

from oslo_config import cfg
from oslo_log import _options as log_options
from oslo_middleware import cors
from oslo_policy import opts as policy_opts

from treeclaim.config.masking import HIDDEN, database_place, without_credentials
from treeclaim.config.options import list_options

OptionGroups = Sequence[tuple[str | None, Sequence[cfg.Opt]]]
"""Options by group; None is the group DEFAULT."""


_DATABASES = {("placement_database", name) for name in ("connection", "slave_connection")}
"""Secret options that are URLs of databases."""


@dataclass(frozen=True, slots=True)
class EffectiveOption:
    """The value that an option has.

    Attributes:
        name: `[group]/option`.
        value: Secrets are not shown.
        source: A file, the environment, or "default".
        is_default: Whether it is not set.
    """

    name: str
    value: str
    source: str
    is_default: bool


def effective_options(options: cfg.ConfigOpts, more: OptionGroups) -> list[EffectiveOption]:
    """Return the effective options by name.

    Args:
        options: Of the service.
        more: Options by group of libraries that read their own when they are first used.
    """
    for group, some in more:
        options.register_opts(some, group=group)
    found = []
    for group, some in all_options(more):
        where = options if group is None else options[group]
        # A library lists some options that it registers only where it needs them.
        registered = [option for option in some if option.dest in where]
        found += [_effective(options, group, option, where[option.dest]) for option in registered]
    return sorted(found, key=lambda option: option.name)


def all_options(more: OptionGroups) -> OptionGroups:
    """Return every option that the service or one of its libraries reads.

    Args:
        more: Those of libraries that read their own when they are first used.
    """
    libraries = [*log_options.list_opts(), *policy_opts.list_opts(), ("cors", cors.CORS_OPTS)]
    return [*list_options(), *libraries, *more]


def _shown(group: str | None, option: cfg.Opt, value: object) -> str:
    """Return a value without its secrets; a database's host is not secret."""
    if not option.secret or not value:
        return without_credentials(str(value))
    return database_place(str(value)) if (group, option.dest) in _DATABASES else HIDDEN


def _effective(
    options: cfg.ConfigOpts, group: str | None, option: cfg.Opt, value: object
) -> EffectiveOption:
    location = options.get_location(option.dest, group)
    name = f"[{group or 'DEFAULT'}]/{option.dest}"
    shown = _shown(group, option, value)
    if location is None or not location.location.is_user_controlled:
        return EffectiveOption(name, shown, "default", is_default=True)
    source = location.detail or location.location.name
    return EffectiveOption(name, shown, source, is_default=False)
