# SPDX-License-Identifier: Apache-2.0
"""The policy: evaluates the rules of the operator's files by oslo.policy, and reloads changed files.

oslo.policy parses an invalid rule as "never", and a reference to an undefined rule as false. At start, these doubtful
rules are logged; later, a changed file with a doubtful rule is not applied.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from oslo_config import cfg
from oslo_policy import policy as oslo_policy

from treeclaim.api.protocol.callers import Identity, make_policy_credentials
from treeclaim.api.protocol.followed_files import FollowedFiles
from treeclaim.api.protocol.short_cache import cache_short
from treeclaim.model.errors import PolicyFileError

_LOG = logging.getLogger(__name__)

_LONGEST_DECIDED = 1_024
"""Most characters of the key of a cached decision: 2 MiB for all keys. A caller, a rule and a target usually have 300
characters, but callers choose the target's project."""

_REFERENCE = re.compile(r"\brule:([^\s()]+)")

_NEVER = re.compile(r"(?<![^\s()\[\],'\"])!(?![^\s()\[\],'\"])")
"""The check `!`, which no caller satisfies."""

_Target = tuple[tuple[str, str | None], ...]
_Decider = Callable[[str, tuple[str | None, ...], _Target], bool]
"""Decides by a rule, the values of an identity, and a target."""


class Policy:
    """Evaluates the rules, and caches decisions until a policy file changes."""

    def __init__(
        self, configuration: cfg.ConfigOpts, defaults: Sequence[oslo_policy.RuleDefault]
    ) -> None:
        """Load the rules; log the doubtful and the ineffective rules of the files.

        Raises:
            PolicyFileError: if a file is invalid.
        """
        self._configuration = configuration
        self._defaults = defaults
        self._has_loaded = False
        list_files = partial(list_policy_files, configuration)
        self._decider = FollowedFiles("rules", list_files, self._load, PolicyFileError)

    def allows(self, rule: str, identity: Identity, target: Mapping[str, str | None]) -> bool:
        """Return whether a rule allows the caller to act on a target."""
        return self._decider.contents()(rule, identity.values, tuple(sorted(target.items())))

    def _load(self) -> _Decider:
        enforcer, doubts, unknown_names = load_rules(self._configuration, self._defaults)
        if self._has_loaded and doubts:
            raise PolicyFileError("; ".join(doubts))
        self._has_loaded = True
        for doubt in doubts:
            _LOG.warning("In the policy files: %s", doubt)
        for name in unknown_names:
            _LOG.warning("No operation uses the rule %s of the policy files", name)
        return _make_decider(enforcer)


def _make_decider(enforcer: oslo_policy.Enforcer) -> _Decider:
    @cache_short(2_048, _LONGEST_DECIDED)
    def decide(rule: str, caller: tuple[str | None, ...], target: _Target) -> bool:
        return bool(
            enforcer.authorize(rule, dict(target), make_policy_credentials(caller), do_raise=False)
        )

    return decide


def load_rules(
    configuration: cfg.ConfigOpts, defaults: Sequence[oslo_policy.RuleDefault]
) -> tuple[oslo_policy.Enforcer, Sequence[str], Sequence[str]]:
    """Create an enforcer from defaults and files; it does not read the files again.

    Returns:
        The enforcer, the reasons why rules are doubtful, and the names of unknown rules without references.

    Raises:
        PolicyFileError: if a file is unreadable or invalid, or references between rules form a cycle.
    """
    for path in list_policy_files(configuration):
        _require_rules(path)
    enforcer = make_enforcer(configuration, defaults)
    # Undefined rules are reported by name.
    enforcer.skip_undefined_check = True
    try:
        with _silence_parser():
            enforcer.load_rules()
        enforcer.check_rules(raise_on_violation=True)
    except oslo_policy.InvalidDefinitionError as error:
        raise PolicyFileError(f"the references between rules form a cycle: {error}") from error
    except (OSError, ValueError, TypeError) as error:
        raise PolicyFileError(str(error)) from error
    enforcer.use_conf = False
    return enforcer, *_find_doubts(enforcer, configuration.oslo_policy.policy_default_rule)


def make_enforcer(
    configuration: cfg.ConfigOpts, defaults: Sequence[oslo_policy.RuleDefault]
) -> oslo_policy.Enforcer:
    """Create an enforcer with the default rules, which has read no file."""
    enforcer = oslo_policy.Enforcer(configuration)
    enforcer.suppress_deprecation_warnings = True
    enforcer.suppress_default_change_warnings = True
    enforcer.register_defaults(defaults)
    return enforcer


def list_policy_files(configuration: cfg.ConfigOpts) -> list[Path]:
    """Return the files that oslo.policy reads, in its order."""
    options = configuration.oslo_policy
    files = []
    # Some releases of oslo.policy choose between two file names.
    main = configuration.find_file(oslo_policy.Enforcer(configuration).policy_file)
    if main is not None:
        files.append(Path(main))
    for name in options.policy_dirs:
        folder = configuration.find_file(name)
        if folder is not None and Path(folder).is_dir():
            paths = sorted(Path(folder).iterdir())
            files += [path for path in paths if path.is_file() and not path.name.startswith(".")]
    return files


def _require_rules(path: Path) -> None:
    """Raise PolicyFileError for a file that oslo.policy rejects, or that has a rule that raises at each request."""
    try:
        rules = oslo_policy.parse_file_contents(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PolicyFileError(f"{path}: {' '.join(str(error).split())}") from error
    if not isinstance(rules, dict):
        raise PolicyFileError(f"{path}: expected rules in the form 'name': 'rule'")
    for name, rule in rules.items():
        try:
            with _silence_parser():
                check = oslo_policy.Rules.from_dict({name: rule})[name]
            # Each request formats the text of a check with its values, such as `%(project_id)s`.
            str(check) % defaultdict(str)
        except (TypeError, ValueError, AttributeError) as error:
            message = f"{path}: {name}: {rule!r} is not a valid rule"
            raise PolicyFileError(message) from error


def _find_doubts(enforcer: oslo_policy.Enforcer, default_rule: str) -> tuple[list[str], list[str]]:
    doubt_by_name: dict[str, str] = {}
    references = {default_rule}
    for name, rule in enforcer.file_rules.items():
        check = str(rule.check)
        if len(_NEVER.findall(check)) > len(_NEVER.findall(str(rule.check_str))):
            doubt_by_name[name] = f"{name} is not a valid rule, and denies every request"
        for reference in _REFERENCE.findall(check):
            references.add(reference)
            # A defined default rule replaces every undefined rule.
            if not {reference, default_rule} & enforcer.rules.keys():
                doubt_by_name[name] = (
                    f"{name} refers to rule:{reference}, which is undefined and evaluates to false"
                )
    unknown_names = enforcer.file_rules.keys() - enforcer.registered_rules.keys() - references
    return list(doubt_by_name.values()), sorted(unknown_names)


@contextmanager
def _silence_parser() -> Iterator[None]:
    """Suppress oslo.policy's traceback for an invalid rule, which the caller reports by name."""
    logger = logging.getLogger("oslo_policy._parser")
    was_disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was_disabled
