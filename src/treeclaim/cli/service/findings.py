# SPDX-License-Identifier: Apache-2.0
"""Checks of a valid configuration, with the file and line of each finding.

This module parses the configuration files itself: oslo.config has no line numbers.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oslo_config import cfg
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim.admin import FaultKind
from treeclaim.admin.keystone_check import check_keystone
from treeclaim.api.middleware import tokens
from treeclaim.api.middleware.authentication import read_password_file
from treeclaim.api.policy_rules import list_rules
from treeclaim.api.protocol.policy import load_rules
from treeclaim.api.resources.placing.flavor_file import FlavorFileError, read_flavor_file
from treeclaim.config import (
    CONFIG_DIR_VARIABLE,
    PROJECT,
    WITHOUT_EFFECT,
    Configuration,
    ConfigurationError,
    OptionGroups,
)
from treeclaim.logs import LoggingError, check_logging
from treeclaim.model.errors import PolicyFileError, SchemaRevisionError, StoreUnavailableError
from treeclaim.model.names import did_you_mean
from treeclaim.store import Store
from treeclaim.store.database.engine import (
    describe_engine_error,
    lend_connection,
    make_read_only_engine,
)
from treeclaim.store.database.failures import describe_cause, is_refusal
from treeclaim.store.database.requirements import require_usable_server
from treeclaim.store.schema import revisions as schema

_DEFAULT = "DEFAULT"
_KEYSTONE = "keystone_authtoken"
_CONNECTION = ("placement_database", "connection")
_VARIABLE = re.compile("OS_([A-Z0-9_]+?)__([A-Z0-9_]+)")
_FILES = (
    ("oslo_policy", "policy_file"),
    (_KEYSTONE, "cafile"),
    (_KEYSTONE, "certfile"),
    (_KEYSTONE, "keyfile"),
)
"""Options that name an existing file."""

_LOG_FILES = ("log_config_append", "log_dir", "log_file")
"""Options with paths of the log."""


@dataclass(frozen=True, slots=True)
class ConfigFinding:
    """An error, with which the service cannot run, or a warning; `where` is a line, a variable, or an option."""

    is_error: bool
    where: str
    text: str

    def __str__(self) -> str:
        """Return the finding in one line."""
        return f"{'error  ' if self.is_error else 'warning'} {self.where}: {self.text}"


SettingLine = tuple[str, str, str | None]
"""Place (`file:line`), section, and option of a line; the option is None for a section header."""


class OptionPlaces:
    """The places of options: variables of the environment, or lines of the files that the service reads."""

    def __init__(self, config_files: Sequence[str], config_dirs: Iterable[str]) -> None:
        files = list(config_files)
        if not files and (directory := os.environ.get(CONFIG_DIR_VARIABLE)):
            files = [str(Path(directory) / f"{PROJECT}.conf")]
        elif not files:
            files = [str(path) for path in cfg.find_config_files(project=PROJECT)]
        for directory in config_dirs:
            files += sorted(str(path) for path in Path(directory).glob("*.conf"))
        self.lines = [line for file in files for line in _read_lines(file)]
        self._places = {(group, name): where for where, group, name in self.lines}

    def find(self, group: str | None, name: str) -> str | None:
        """Return the place of an option; None if it is not set."""
        variable = f"OS_{(group or _DEFAULT).upper()}__{name.upper()}"
        if variable in os.environ:
            return variable
        return self._places.get((group or _DEFAULT, name))

    def make_error(self, group: str, name: str, text: str) -> ConfigFinding:
        """Return an error about an option."""
        return ConfigFinding(True, self.find(group, name) or f"[{group}]/{name}", text)

    def make_warning(self, group: str, name: str, text: str) -> ConfigFinding:
        """Return a warning about an option."""
        return replace(self.make_error(group, name, text), is_error=False)


def _read_lines(file: str) -> Iterator[SettingLine]:
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    group = _DEFAULT
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("["):
            group = line.strip().strip("[]")
            yield f"{file}:{number}", group, None
        elif line and not line.startswith((" ", "\t", "#", ";")):
            name = re.split("[=:]", line)[0].strip()
            yield f"{file}:{number}", group, name.replace("-", "_")


def find_unknown_options(groups: OptionGroups, places: OptionPlaces) -> Iterator[ConfigFinding]:
    """Find unknown sections and options in files and in the environment."""
    known_names: defaultdict[str, set[str]] = defaultdict(set)
    for group, options in groups:
        for option in options:
            known_names[group or _DEFAULT] |= {option.dest, option.name.replace("-", "_")}
            for former_option in option.deprecated_opts:
                former_name = (former_option.name or option.name).replace("-", "_")
                known_names[former_option.group or group or _DEFAULT].add(former_name)
    for where, group, name in places.lines:
        if group in known_names and name is not None and name not in known_names[group]:
            advice = did_you_mean(name, known_names[group])
            yield ConfigFinding(False, where, f"unknown option {name} in [{group}]{advice}")
        elif group not in known_names and name is None:
            yield ConfigFinding(
                False, where, f"unknown section [{group}]{did_you_mean(group, known_names)}"
            )
    names_by_prefix = {
        group.upper(): {name.upper() for name in names} for group, names in known_names.items()
    }
    for variable in sorted(os.environ):
        match = _VARIABLE.fullmatch(variable)
        if match is not None and match[2] not in (names := names_by_prefix.get(match[1], set())):
            text = f"this variable names no option{did_you_mean(match[2], names)}"
            yield ConfigFinding(False, variable, text)


def find_ineffective_options(
    groups: OptionGroups, places: OptionPlaces
) -> Iterator[ConfigFinding]:
    """Find options that are set but have no effect."""
    for group, options in groups:
        for option in options:
            place, text = places.find(group, option.dest), option.help or ""
            if place is not None and text.startswith(WITHOUT_EFFECT):
                reason = text.removeprefix(WITHOUT_EFFECT)
                yield ConfigFinding(False, place, f"{option.dest} has no effect: {reason}")


def _check_files(configuration: Configuration, places: OptionPlaces) -> Iterator[ConfigFinding]:
    options: Any = configuration.options
    for group, name in _FILES:
        is_set = places.find(group, name) is not None
        value = str(getattr(options[group], name, None) or "") if is_set else ""
        if value and not Path(value).is_file() and options.find_file(value) is None:
            text = f"{name}: there is no file {value}"
            if name == "policy_file":
                yield places.make_warning(group, name, f"{text}; the defaults apply")
            else:
                yield places.make_error(group, name, text)


def _check_log_handlers(
    configuration: Configuration, places: OptionPlaces
) -> Iterator[ConfigFinding]:
    """Try to set up logging."""
    try:
        check_logging(configuration.options, PROJECT)
    except LoggingError as error:
        is_set = (name for name in _LOG_FILES if places.find(_DEFAULT, name))
        place = _find_named_option(str(error), places)
        finding = places.make_error(_DEFAULT, next(is_set, _LOG_FILES[0]), str(error))
        yield replace(finding, where=place or finding.where)


def _check_authentication(
    configuration: Configuration, places: OptionPlaces
) -> Iterator[ConfigFinding]:
    """Check Keystone and the token cache, or the password file."""
    options = configuration.options
    if options.api.auth_strategy == "http_basic":
        try:
            read_password_file(options.api.http_basic_auth_user_file)
        except ConfigurationError as error:
            yield places.make_error("api", "http_basic_auth_user_file", str(error))
    if not configuration.uses_keystone:
        return
    fault = tokens.find_option_fault(options)
    if fault is not None:
        yield places.make_error(_KEYSTONE, "memcached_servers", fault)
        return
    keystone = check_keystone(options)
    if keystone is not None:
        is_error = keystone.kind is FaultKind.REFUSED
        yield ConfigFinding(is_error, f"[{_KEYSTONE}]", keystone.detail)
    for fault in tokens.find_server_faults(options):
        text = f"memcached_servers: {fault}; until then Keystone validates each token"
        yield places.make_warning(_KEYSTONE, "memcached_servers", text)


def _check_flavors(configuration: Configuration, places: OptionPlaces) -> Iterator[ConfigFinding]:
    options, metrics = configuration.options.treeclaim, configuration.metrics
    if metrics is None:
        for name in ("metrics_of_aggregates", "metrics_of_flavors"):
            if getattr(options, name):
                text = f"{name}: has no effect while metrics_of_resources = none"
                yield places.make_warning("treeclaim", name, text)
    elif metrics.flavors is not None:
        try:
            read_flavor_file(metrics.flavors, options.max_request_groups)
        except FlavorFileError as error:
            yield places.make_error("treeclaim", "metrics_of_flavors", str(error))


def _check_database(configuration: Configuration, places: OptionPlaces) -> Iterator[ConfigFinding]:
    """Check the database without writing to it.

    An invalid URL and a refusal by the server are errors. An unreachable server and a missing schema are warnings.
    """
    settings = configuration.database
    try:
        # Unlike a reader, the service rejects some URLs, such as one of a database in memory.
        Store(settings).close()
        engine = make_read_only_engine(settings)
    except (SQLAlchemyError, ImportError, TypeError, ValueError) as error:
        yield places.make_error(*_CONNECTION, f"connection: {describe_engine_error(error)}")
        return
    url = make_url(settings.url)
    file = Path(str(url.database)) if url.get_backend_name() == "sqlite" else None
    if file is not None and not file.exists():
        if not file.parent.is_dir():
            yield places.make_error(*_CONNECTION, f"connection: there is no folder {file.parent}")
        elif not configuration.options.placement_database.sync_on_startup:
            text = f"there is no file {file} yet; 'treeclaim db sync' makes it"
            yield places.make_warning(*_CONNECTION, f"connection: {text}")
        return
    try:
        with lend_connection(engine):
            pass
        require_usable_server(engine, settings)
        schema.require_ready(engine)
    except DBAPIError as error:
        is_refused = is_refusal(error.orig)
        text = "the server refuses this" if is_refused else "the database does not answer"
        finding = places.make_error(*_CONNECTION, f"connection: {text}: {describe_cause(error)}")
        yield replace(finding, is_error=is_refused)
    except SchemaRevisionError as error:
        yield places.make_warning(*_CONNECTION, f"connection: {error}")
    except StoreUnavailableError as error:
        yield places.make_error(*_CONNECTION, f"connection: {error.for_operators}")
    finally:
        engine.dispose()


def _check_policy(configuration: Configuration, places: OptionPlaces) -> Iterator[ConfigFinding]:
    """Check the policy files: faults that the service rejects are errors, dubious rules are warnings."""
    options = configuration.options
    try:
        enforcer, doubts, unknown_names = load_rules(options, list_rules())
    except PolicyFileError as error:
        yield places.make_error("oslo_policy", "policy_file", f"policy_file: {error}")
        return
    names = enforcer.registered_rules
    for text in doubts:
        yield places.make_warning("oslo_policy", "policy_file", text)
    for name in unknown_names:
        text = f"no operation uses rule {name!r}{did_you_mean(name, names)}"
        yield places.make_warning("oslo_policy", "policy_file", text)


def find_error_place(text: str, places: OptionPlaces) -> str:
    """Return the place of the option, or else the line, in an error message of oslo.config."""
    line = re.search(r"at (\S+):(\d+)", text)
    line_place = "configuration" if line is None else f"{line[1]}:{line[2]}"
    return _find_named_option(text, places) or line_place


def _find_named_option(text: str, places: OptionPlaces) -> str | None:
    option = re.search(r"\[([^\]\s]+)\]/([A-Za-z0-9_-]+)", text)
    return option and places.find(option[1], option[2].replace("-", "_"))


CHECKS = (
    _check_files,
    _check_log_handlers,
    _check_database,
    _check_authentication,
    _check_flavors,
    _check_policy,
)
"""Checks of a configuration without invalid values."""
