# SPDX-License-Identifier: Apache-2.0
"""Findings of a configuration check, beyond invalid values."""

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oslo_policy import policy as oslo_policy
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from treeclaim.admin import FaultKind
from treeclaim.admin.capacity import FlavorFileError, flavors_in
from treeclaim.admin.keystone_check import check_keystone
from treeclaim.api.middleware import tokens
from treeclaim.api.middleware.authentication import read_password_file
from treeclaim.api.policy_rules import load_policy
from treeclaim.api.protocol.policy import files_of
from treeclaim.cli.service.stores import DEFAULT, SettingLine
from treeclaim.client.topology.document import Members, Problem, read_document
from treeclaim.config import (
    PROJECT,
    WITHOUT_EFFECT,
    Configuration,
    ConfigurationError,
    OptionGroups,
)
from treeclaim.logs import LoggingError, check_logging
from treeclaim.model.errors import PolicyFileError
from treeclaim.store import Store
from treeclaim.store.database.connecting.engine import database_words

_VARIABLE = re.compile("OS_([A-Z0-9_]+?)__([A-Z0-9_]+)")
_REFERENCE = re.compile(r"\brule:([^\s()]+)")
_NAMED_OPTION = re.compile(r"\[DEFAULT\]/(\w+)")
_FILES = (
    ("oslo_policy", "policy_file"),
    ("keystone_authtoken", "cafile"),
    ("keystone_authtoken", "certfile"),
    ("keystone_authtoken", "keyfile"),
    (DEFAULT, "log_config_append"),
)
"""Options that name a file that has to be there."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that an operator should know.

    Attributes:
        is_error: Whether the service cannot be used so.
        where: File and line, or the environment's variable.
        text: What is wrong.
    """

    is_error: bool
    where: str
    text: str

    def __str__(self) -> str:
        """Write it in a line."""
        return f"{'error  ' if self.is_error else 'warning'} {self.where}: {self.text}"


class OptionPlaces:
    """The places where options are set: a line of a file, or the environment, which takes precedence."""

    def __init__(self, lines: Sequence[SettingLine]) -> None:
        self._lines = {(line.group, line.name): line for line in lines}

    def place(self, group: str | None, name: str) -> str | None:
        """Return where an option is set, None if it is nowhere."""
        variable = f"OS_{(group or DEFAULT).upper()}__{name.upper()}"
        if variable in os.environ:
            return variable
        line = self._lines.get((group or DEFAULT, name))
        return None if line is None else line.where


def known_names(groups: OptionGroups) -> dict[str, set[str]]:
    """Return the names of all options by section, including those of former releases."""
    names_by_section: dict[str, set[str]] = {}
    for group, options in groups:
        for option in options:
            names = names_by_section.setdefault(group or DEFAULT, set())
            names |= {option.dest, option.name.replace("-", "_")}
            for old in option.deprecated_opts:
                place = names_by_section.setdefault(old.group or group or DEFAULT, set())
                place.add((old.name or option.name).replace("-", "_"))
    return names_by_section


def unknown_options(
    lines: Iterable[SettingLine], known: Mapping[str, set[str]]
) -> Iterator[Finding]:
    """Find unknown sections and options in files and in the environment."""
    for line in lines:
        if line.group not in known:
            if line.name is None:
                near = _near(line.group, known)
                yield Finding(False, line.where, f"unknown section [{line.group}]{near}")
        elif line.name is not None and line.name not in known[line.group]:
            near = _near(line.name, known[line.group])
            yield Finding(False, line.where, f"unknown option {line.name} in [{line.group}]{near}")
    upper = {group.upper(): {name.upper() for name in names} for group, names in known.items()}
    for variable in sorted(os.environ):
        match = _VARIABLE.fullmatch(variable)
        if match is not None and match[2] not in upper.get(match[1], set()):
            near = _near(match[2], upper.get(match[1], set()))
            yield Finding(False, variable, f"this variable names no option{near}")


def without_effect(groups: OptionGroups, places: OptionPlaces) -> Iterator[Finding]:
    """Find options that are set, and that nothing reads."""
    for group, options in groups:
        for option in options:
            place, text = places.place(group, option.dest), option.help or ""
            if place is not None and text.startswith(WITHOUT_EFFECT):
                why = text.removeprefix(WITHOUT_EFFECT)
                yield Finding(False, place, f"{option.dest} has no effect: {why}")


def _near(name: str, existing_names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(existing_names), 1)
    return f"; did you mean {near[0]}?" if near else ""


def missing_files(options: Any, places: OptionPlaces) -> Iterator[Finding]:
    """Find files that are named but missing, and log folders that cannot be written to."""
    for group, name in _FILES:
        value = _value(options, group, name)
        place = places.place(group, name)
        if not value or not place or _any_found(options, value):
            continue
        if name == "policy_file":
            yield Finding(False, place, f"{name}: there is no file {value}; the defaults apply")
        else:
            yield Finding(True, place, f"{name}: there is no file {value}")
    for name in ("log_dir", "log_file"):
        value = _value(options, DEFAULT, name)
        place = places.place(DEFAULT, name)
        if not value or not place:
            continue
        folder = Path(value) if name == "log_dir" else Path(value).parent
        if name == "log_file" and not Path(value).is_absolute():
            folder = Path(_value(options, DEFAULT, "log_dir") or ".") / folder
        if not folder.is_dir():
            yield Finding(True, place, f"{name}: there is no folder {folder} to write logs to")
        elif not os.access(folder, os.W_OK | os.X_OK):
            yield Finding(True, place, f"{name}: {folder} cannot be written by this user")


def log_handlers(configuration: Configuration, places: OptionPlaces) -> Iterator[Finding]:
    """Find out whether logging can be set up, by setting it up."""
    try:
        check_logging(configuration.options, PROJECT)
    except LoggingError as error:
        match = _NAMED_OPTION.match(str(error))
        name = "log_config_append" if match is None else match[1]
        yield Finding(True, places.place(DEFAULT, name) or f"[{DEFAULT}]", str(error))


def authentication(configuration: Configuration, places: OptionPlaces) -> Iterator[Finding]:
    """Find out whether tokens can be validated and kept, or the password file can be used."""
    if configuration.options.api.auth_strategy == "http_basic":
        try:
            read_password_file(configuration.options.api.http_basic_auth_user_file)
        except ConfigurationError as error:
            place = places.place("api", "http_basic_auth_user_file") or "[api]"
            yield Finding(True, place, str(error))
    if not configuration.uses_keystone:
        return
    place = places.place("keystone_authtoken", "memcached_servers") or "[keystone_authtoken]"
    fault = tokens.fault_of(configuration.options)
    if fault is not None:
        yield Finding(True, place, fault)
        return
    keystone = check_keystone(configuration.options)
    if keystone is not None:
        is_error = keystone.kind is FaultKind.REFUSED
        yield Finding(is_error, "[keystone_authtoken]", keystone.detail)
    silent = list(tokens.silent_servers(configuration.options))
    for server in silent:
        yield Finding(
            False,
            place,
            f"memcached_servers: {server} does not answer; while it is down each worker keeps no "
            "tokens there and asks Keystone",
        )
    lost = None if silent else tokens.fault_of_servers(configuration.options)
    if lost is not None:
        yield Finding(
            False, place, f"memcached_servers: {lost}; Keystone is asked about each token"
        )


def flavors(configuration: Configuration, places: OptionPlaces) -> Iterator[Finding]:
    """Find out whether the metrics of flavors can be had."""
    options = configuration.options.treeclaim
    for name in ("metrics_of_aggregates", "metrics_of_flavors"):
        if configuration.metrics is None and getattr(options, name):
            place = places.place("treeclaim", name) or f"[treeclaim]/{name}"
            yield Finding(False, place, f"{name}: has no effect while metrics_of_resources = none")
    if configuration.metrics is not None and configuration.metrics.flavors is not None:
        try:
            flavors_in(
                configuration.metrics.flavors, configuration.options.treeclaim.max_request_groups
            )
        except FlavorFileError as error:
            place = places.place("treeclaim", "metrics_of_flavors") or "[treeclaim]"
            yield Finding(True, place, str(error))


def _value(options: Any, group: str, name: str) -> str | None:
    where = options if group == DEFAULT else getattr(options, group, {})
    value = getattr(where, name, None)
    return None if value is None else str(value)


def _any_found(options: Any, value: str) -> bool:
    return Path(value).is_file() or options.find_file(value) is not None


def database(configuration: Configuration, places: OptionPlaces) -> Iterator[Finding]:
    """Check that an installed driver can reach the database of the URL."""
    place = places.place("placement_database", "connection") or "[placement_database]/connection"
    try:
        Store(configuration.database).close()
    except (SQLAlchemyError, ImportError, TypeError, ValueError) as error:
        yield Finding(True, place, f"connection: {database_words(error)}")
        return
    url = make_url(configuration.database.url)
    if url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:"):
        folder = Path(str(url.database)).parent
        if not folder.is_dir():
            yield Finding(True, place, f"connection: there is no folder {folder}")


def policy(
    enforcer: oslo_policy.Enforcer, options: Any, places: OptionPlaces
) -> Iterator[Finding]:
    """Find what is wrong in the policy files; an error is what the service itself refuses.

    Rules that no operation uses, that oslo.policy does not understand, or that refer to undefined rules, and what
    is given twice, are warnings.
    """
    try:
        _, loaded = load_policy(options)
        refused = None
        for doubt in loaded.doubtful:
            yield Finding(False, f"{doubt.file}:{doubt.line}", doubt.text)
    except PolicyFileError as error:
        refused = str(error)
    findings = [
        replace(finding, is_error=finding.is_error and refused is not None)
        for file in files_of(options)
        for finding in _policy_file(enforcer, file)
    ]
    yield from findings
    # What is told already, with its line, is not told again.
    if refused is not None and not any(finding.is_error for finding in findings):
        place = places.place("oslo_policy", "policy_file") or "[oslo_policy]/policy_file"
        yield Finding(True, place, f"policy_file: {refused}")


def _policy_file(enforcer: oslo_policy.Enforcer, file: Path) -> Iterator[Finding]:
    problems: list[Problem] = []
    try:
        document = read_document(file.read_text(encoding="utf-8", errors="replace"), problems)
    except OSError:
        # The service refuses it, and says so.
        return
    yield from (Finding(True, f"{file}:{problem.line}", problem.text) for problem in problems)
    if isinstance(document, Members):
        yield from _policy_rules(enforcer, document, str(file))


def _policy_rules(
    enforcer: oslo_policy.Enforcer, document: Members, file: str
) -> Iterator[Finding]:
    registered = set(enforcer.registered_rules)
    referred = {name for value in document.values() for name in _REFERENCE.findall(str(value))}
    for name, number in document.lines.items():
        where = f"{file}:{number}"
        if name not in registered and name not in referred:
            near = difflib.get_close_matches(name, registered, 1)
            advice = f"; did you mean {near[0]!r}?" if near else ""
            yield Finding(False, where, f"no operation uses rule {name!r}{advice}")
