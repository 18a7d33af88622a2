# SPDX-License-Identifier: Apache-2.0
"""The policy: finds, reads and checks the operator's files, and decides by the rules, also when files change.

oslo.policy treats a rule that it cannot parse as "never", and a reference to an undefined rule as false, and logs
that. At start, the log names such a rule with file and line; a changed file that has one does not take effect. Rules are parsed by the public interface of oslo.policy. No operation is known here; the rules of
the operations are in `api/policy_rules`.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from oslo_config import cfg
from oslo_policy import policy as oslo_policy

from treeclaim.api.protocol.callers import Identity, credentials_of
from treeclaim.api.protocol.short_cache import cache_short
from treeclaim.model.errors import PolicyFileError

_LOG = logging.getLogger(__name__)

_LONGEST_DECIDED = 1_024
"""Characters of all that a cached decision depends on: 2 MiB for all. A caller, a rule and a target take
some 300. Callers choose the target's project."""

_LOOK_EVERY = 1.0
"""Seconds between two checks of the policy files: a check costs more than a search."""

_SAY_EVERY = 60.0
"""Seconds between two log lines about files that stay broken."""

_Target = tuple[tuple[str, str | None], ...]


class Policy:
    """Decides by the rules, and caches decisions until a policy file changes.

    Each state of the files gets an enforcer of its own. While the files are broken, the last good
    one stays in use: a typing error must neither open the service nor close it.
    """

    def __init__(
        self, load: Callable[[], oslo_policy.Enforcer], state: Callable[[], Hashable]
    ) -> None:
        """Load the rules.

        Args:
            load: Makes an enforcer from the files; it never looks at them again.
            state: Returns something else whenever the files change.

        Raises:
            PolicyFileError: if a file cannot be understood.
        """
        self._load = load
        self._state = state
        self._lock = threading.Lock()
        self._loaded = state()
        self._look_at = time.monotonic() + _LOOK_EVERY
        self._say_at = 0.0
        self._decide = _deciding(load())

    def allows(self, rule: str, identity: Identity, target: Mapping[str, str | None]) -> bool:
        """Tell whether a rule lets the caller act on a target."""
        if time.monotonic() >= self._look_at:
            self._follow_files()
        return self._decide(rule, identity.values, tuple(sorted(target.items())))

    def _follow_files(self) -> None:
        with self._lock:
            if time.monotonic() < self._look_at:
                return
            self._look_at = time.monotonic() + _LOOK_EVERY
            state = self._state()
            if state == self._loaded:
                return
            try:
                self._decide = _deciding(self._load())
            except PolicyFileError as error:
                self._say(error)
            else:
                self._loaded = state
                self._say_at = 0.0
                _LOG.info("The changed policy files are in force.")

    def _say(self, error: PolicyFileError) -> None:
        if time.monotonic() >= self._say_at:
            self._say_at = time.monotonic() + _SAY_EVERY
            _LOG.error("The policy files are broken, the last good rules stay in force: %s", error)


def _deciding(
    enforcer: oslo_policy.Enforcer,
) -> Callable[[str, tuple[str | None, ...], _Target], bool]:
    """Return a function that decides by an enforcer and caches its decisions."""

    @cache_short(2_048, _LONGEST_DECIDED)
    def decide(rule: str, caller: tuple[str | None, ...], target: _Target) -> bool:
        return bool(enforcer.authorize(rule, dict(target), credentials_of(caller), do_raise=False))

    return decide


_WORDS = re.compile(r"[^\s()]+")
_NEVER = "!"
"""The rule that nobody satisfies."""

_EXAMPLE = {"project_id": "p", "user_id": "u"}
"""The target that a rule is checked against (contract page 05, section 2)."""


@dataclass(frozen=True, slots=True)
class RuleDoubt:
    """A rule that oslo.policy takes for "never" in whole or in part.

    Attributes:
        file, line: Where it is.
        text: Why.
    """

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        """Return it with its place."""
        return f"{self.file}, line {self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class Findings:
    """Doubtful rules in valid policy files.

    Attributes:
        unknown: Rules that no operation has and no rule refers to, each with its place.
        doubtful: Rules that oslo.policy does not understand, or that refer to undefined rules.
    """

    unknown: tuple[str, ...]
    doubtful: tuple[RuleDoubt, ...]


@dataclass(frozen=True, slots=True)
class _FileRule:
    """A rule as written in a file.

    Attributes:
        name: Its name.
        check: What it was parsed to.
        file, line: Where it is.
        is_understood: Whether oslo.policy understands all of it.
    """

    name: str
    check: object
    file: str
    line: int
    is_understood: bool


def state_of(configuration: cfg.ConfigOpts) -> tuple[tuple[str, int, int, int], ...]:
    """Return a value that changes when a policy file appears, changes or disappears."""
    states = []
    for path in files_of(configuration):
        try:
            status = path.stat()
        except OSError:
            continue
        states.append((str(path), status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(states)


def enforcer_of(
    configuration: cfg.ConfigOpts, defaults: Sequence[oslo_policy.RuleDefault]
) -> tuple[oslo_policy.Enforcer, Findings]:
    """Make an enforcer from defaults and files; it does not look at the files again.

    Raises:
        PolicyFileError: if a file cannot be read or understood, or rules refer to each other in a circle.
    """
    rules = [rule for path in files_of(configuration) for rule in _rules_of(path)]
    names = {default.name for default in defaults}
    default = configuration.oslo_policy.policy_default_rule
    # Where the default rule is defined, it stands for every undefined rule.
    has_default = default in {rule.name for rule in rules}
    doubtful = _doubtful(rules, None if has_default else names)
    enforcer = make_enforcer(configuration, defaults)
    try:
        with _silenced_parser():
            enforcer.load_rules()
        # Undefined rules are reported with their places.
        enforcer.skip_undefined_check = True
        enforcer.check_rules(raise_on_violation=True)
    except oslo_policy.InvalidDefinitionError as error:
        raise PolicyFileError(f"rules refer to each other in a circle: {error}") from error
    except (OSError, ValueError, TypeError) as error:
        raise PolicyFileError(str(error)) from error
    enforcer.use_conf = False
    return enforcer, Findings(tuple(_unknown(rules, {*names, default})), tuple(doubtful))


def make_enforcer(
    configuration: cfg.ConfigOpts, defaults: Sequence[oslo_policy.RuleDefault]
) -> oslo_policy.Enforcer:
    """Make an enforcer that knows the default rules and has read no file yet."""
    enforcer = oslo_policy.Enforcer(configuration)
    enforcer.suppress_deprecation_warnings = True
    enforcer.suppress_default_change_warnings = True
    enforcer.register_defaults(defaults)
    return enforcer


def files_of(configuration: cfg.ConfigOpts) -> list[Path]:
    """Return the files that oslo.policy reads, in its order."""
    options = configuration.oslo_policy
    files = []
    # Some releases of oslo.policy choose between two names.
    main = configuration.find_file(oslo_policy.Enforcer(configuration).policy_file)
    if main is not None:
        files.append(Path(main))
    for name in options.policy_dirs:
        folder = configuration.find_file(name)
        if folder is not None and Path(folder).is_dir():
            paths = sorted(Path(folder).iterdir())
            files += [path for path in paths if path.is_file() and not path.name.startswith(".")]
    return files


def _rules_of(path: Path) -> Iterator[_FileRule]:
    try:
        document = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyFileError(f"{path}: {error}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else str(path)
        raise PolicyFileError(f"{where}: {getattr(error, 'problem', None) or error}") from error
    if document is None:
        return
    if not isinstance(document, yaml.MappingNode):
        raise PolicyFileError(f"{path}, line 1: rules are written as 'name': 'rule'")
    for key, value in document.value:
        place = f"{path}, line {key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode) or isinstance(value, yaml.MappingNode):
            raise PolicyFileError(f"{place}: rules are written as 'name': 'rule'")
        yield _read_rule(str(path), key, value)


def _read_rule(file: str, key: yaml.ScalarNode, node: yaml.Node) -> _FileRule:
    """Parse a rule; refuse what oslo.policy refuses, or fails at with each request."""
    line = key.start_mark.line + 1
    where = f"{file}, line {line}, {key.value}"
    try:
        value = yaml.SafeLoader("").construct_document(node)
        check = _parse_rule("" if value is None else value)
    except (yaml.YAMLError, TypeError, ValueError, AttributeError) as error:
        raise PolicyFileError(f"{where}: this cannot be understood as a rule") from error
    if not isinstance(value, str | list | None):
        raise PolicyFileError(f"{where}: {value!r} is not a rule")
    words = _flat(value) if isinstance(value, list) else _WORDS.findall(value or "")
    nevers = sum(str(part) == _NEVER for part in _inside(check))
    if not all(map(_can_be_filled, _inside(check))):
        raise PolicyFileError(f"{where}: {value!r} cannot be understood as a rule")
    is_understood = nevers == words.count(_NEVER)
    return _FileRule(key.value, check, file, line, is_understood)


def _can_be_filled(check: object) -> bool:
    """Tell whether values can be put into a check as `%(project_id)s`, which is done at each request."""
    try:
        str(getattr(check, "match", "")) % _EXAMPLE
    except (TypeError, ValueError):
        return False
    except KeyError:
        # A check of a value that a request lacks fails.
        return True
    return True


def _parse_rule(rule: Any) -> object:
    """Return what oslo.policy makes of a text, or of nested lists, which its types leave out."""
    with _silenced_parser():
        return oslo_policy.Rules.from_dict({"rule": rule})["rule"]


@contextmanager
def _silenced_parser() -> Iterator[None]:
    """Keep oslo.policy from logging a traceback for a rule that it cannot parse: it is reported with its place."""
    logger = logging.getLogger("oslo_policy._parser")
    was_disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was_disabled


def _flat(value: object) -> list[str]:
    """Return the parts of a rule in the form of nested lists."""
    if isinstance(value, list):
        return [part for inner in value for part in _flat(inner)]
    return [str(value)]


def _inside(check: object) -> Iterator[object]:
    """Yield a check and all its parts."""
    yield check
    parts = getattr(check, "rules", None)
    for part in parts if parts is not None else [getattr(check, "rule", None)]:
        if part is not None:
            yield from _inside(part)


def _references(check: object) -> list[str]:
    return [part.match for part in _inside(check) if isinstance(part, oslo_policy.RuleCheck)]


def _doubtful(rules: Collection[_FileRule], names: Collection[str] | None) -> Iterator[RuleDoubt]:
    """Yield rules that oslo.policy does not understand, or that refer to undefined rules.

    Args:
        rules: Rules of files.
        names: Further names that are defined; None if every name is.
    """
    defined = {rule.name for rule in rules} | set(names or ())
    for rule in rules:
        if not rule.is_understood:
            text = f"{rule.name} cannot be understood as a rule, and allows nobody"
            yield RuleDoubt(rule.file, rule.line, text)
        for name in _references(rule.check):
            if names is not None and name not in defined:
                text = f"{rule.name} refers to rule:{name}, which is not defined, and so is false"
                yield RuleDoubt(rule.file, rule.line, text)


def _unknown(rules: Collection[_FileRule], names: Collection[str]) -> Iterator[str]:
    referred = {name for rule in rules for name in _references(rule.check)}
    for rule in rules:
        if rule.name not in names and rule.name not in referred:
            yield f"{rule.file}, line {rule.line}: no operation asks for {rule.name}"
