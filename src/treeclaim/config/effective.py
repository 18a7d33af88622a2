# SPDX-License-Identifier: Apache-2.0
"""Reports the effective options with their sources, without secrets."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from oslo_config import cfg
from oslo_log import _options as log_options
from oslo_middleware import cors
from oslo_policy import opts as policy_opts

from treeclaim.config.options import list_options

HIDDEN = "****"

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_PASSWORD = re.compile(r"^[^/?\[]*:(?!\d+(?:[/?]|$))")
"""Without an @, a colon precedes a port, or a password without its host."""

_CREDENTIALS = re.compile(r"([a-z][a-z0-9+.-]*://)[^\s,]*@", re.IGNORECASE)


def without_credentials(text: str) -> str:
    """Replace user and password in all URLs of a text."""
    return _CREDENTIALS.sub(rf"\1{HIDDEN}@", text)


def database_place(text: str) -> str:
    """Return the public parts of a database URL: driver, host, port, name of the database.

    An unquoted password may contain any character, including @, so everything up to the last @ is
    hidden. Parameters are dropped, because they may contain a password.
    """
    scheme = _ADDRESS.match(text)
    if scheme is None:
        return HIDDEN
    if scheme[1].startswith("sqlite"):
        # A path has no credentials.
        return text.partition("?")[0]
    credentials, at, place = text[scheme.end() :].rpartition("@")
    if "?" in credentials or (not at and _PASSWORD.search(place)):
        # The question mark may begin the parameters or be part of the password.
        return f"{scheme[1]}://{HIDDEN}"
    return f"{scheme[1]}://{HIDDEN + at if credentials else ''}{place.partition('?')[0]}"


OptionGroups = Sequence[tuple[str | None, Sequence[cfg.Opt]]]
"""Options by group; None is the group DEFAULT."""


_DATABASES = {("placement_database", name) for name in ("connection", "slave_connection")}
"""Secret options that are URLs of databases."""


@dataclass(frozen=True, slots=True)
class EffectiveOption:
    """The value of an option `[group]/option`, without secrets; its source is a file, the environment, or "default"."""

    name: str
    value: str
    source: str
    is_default: bool


def effective_options(options: cfg.ConfigOpts, extra: OptionGroups) -> list[EffectiveOption]:
    """Return the effective options, sorted by name.

    All values must be valid. `extra` are options of libraries that register them at their first use.
    """
    listed_options = []
    for group, group_options in all_options(extra):
        values = options if group is None else options[group]
        # Libraries list options that they register only at their first use.
        registered_options = [option for option in group_options if option.dest in values]
        listed_options += [
            _make_effective_option(options, group, option, values[option.dest])
            for option in registered_options
        ]
    return sorted(listed_options, key=lambda option: option.name)


def all_options(extra: OptionGroups) -> OptionGroups:
    """Return every option of the service and its libraries; `extra` as in `effective_options`."""
    libraries = [*log_options.list_opts(), *policy_opts.list_opts(), ("cors", cors.CORS_OPTS)]
    return [*list_options(), *libraries, *extra]


def _format_value(group: str | None, option: cfg.Opt, value: object) -> str:
    """Return a value without secrets; the host of a database is public."""
    if not option.secret or not value:
        return without_credentials(str(value))
    return database_place(str(value)) if (group, option.dest) in _DATABASES else HIDDEN


def _make_effective_option(
    options: cfg.ConfigOpts, group: str | None, option: cfg.Opt, value: object
) -> EffectiveOption:
    location = options.get_location(option.dest, group)
    name = f"[{group or 'DEFAULT'}]/{option.dest}"
    shown_value = _format_value(group, option, value)
    if location is None or not location.location.is_user_controlled:
        return EffectiveOption(name, shown_value, "default", is_default=True)
    source = location.detail or location.location.name
    return EffectiveOption(name, shown_value, source, is_default=False)
