# SPDX-License-Identifier: Apache-2.0
"""Enforces the given rules, and follows changes of the operator's files."""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Mapping

from oslo_policy import policy as oslo_policy

from treeclaim.api.protocol.callers import Identity
from treeclaim.api.protocol.remembering import remembering_short
from treeclaim.model.errors import PolicyFileError

_LOG = logging.getLogger(__name__)

_REMEMBERED, _LONGEST_REMEMBERED = 2_048, 1_024
"""Decisions, and characters of all that each depends on: 2 MiB. A caller, a rule and a target take
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

    @remembering_short(_REMEMBERED, _LONGEST_REMEMBERED)
    def decide(rule: str, caller: tuple[str | None, ...], target: _Target) -> bool:
        credentials = Identity.of(caller).credentials()
        return bool(enforcer.authorize(rule, dict(target), credentials, do_raise=False))

    return decide
