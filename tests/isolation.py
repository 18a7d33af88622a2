# SPDX-License-Identifier: Apache-2.0
"""Keeps quick tests on what every machine has: no other program, no other host.

Python calls an audit hook before it starts a program or connects. A violation raises an error there, and fails the
test in the end, whatever handled the error. Programs that a test starts find no other programs: `PATH` has the
short list and what the test requests.
"""

import ipaddress
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.resources import RESOURCES, Running, link_programs, requested_by

PROGRAMS = ("cat", "cp", "env", "false", "sed", "sh", "sleep", "touch", "true", "wc")
"""Every Debian has these, and so has every other Unix."""

_LAUNCHES = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn")
_LOCAL_HOSTS = ("", "localhost")


class ForbiddenError(Exception):
    """A quick test started a program, or connected to a host, that not every machine has."""


class Isolation:
    """A plugin of pytest for the quick tier.

    Attributes:
        violations: Violations of the running test.
    """

    def __init__(self, folder: Path) -> None:
        self.violations: list[str] = []
        self._folder = folder
        self._base = link_programs(PROGRAMS, folder / "base")
        self._own = Path(sys.executable).parent
        self._temporary = tempfile.gettempdir()
        self._runs = False
        sys.addaudithook(self._judge)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> object:
        """Restrict what a test starts to what it requests."""
        usual = os.environ["PATH"]
        requested = sorted(requested_by(item))
        folders = [
            link_programs(RESOURCES[name].programs, self._folder / name) for name in requested
        ]
        os.environ["PATH"] = os.pathsep.join((str(self._own), *folders, self._base))
        self._runs = True
        try:
            return (yield)
        finally:
            self._runs = False
            os.environ["PATH"] = usual

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> object:
        """Fail the test if it did what it must not."""
        result = yield
        violations, self.violations = self.violations, []
        if violations:
            pytest.fail("; ".join(dict.fromkeys(violations)), pytrace=False)
        return result

    def _judge(self, event: str, arguments: Sequence[object]) -> None:
        if not self._runs:
            return
        if event in _LAUNCHES:
            program = os.fsdecode(arguments[0])  # type: ignore[arg-type]
            if not self._is_allowed(program):
                self._forbid(f"starts {program}")
        elif event == "os.system":
            self._forbid(f"starts a shell: {arguments[0]!r}")
        elif event == "socket.connect" and not _is_local(arguments[1]):
            self._forbid(f"connects to {arguments[1]!r}")
        elif event == "socket.getaddrinfo" and not _is_local(arguments):
            self._forbid(f"resolves {arguments[0]!r}")

    def _is_allowed(self, program: str) -> bool:
        path = Path(program)
        # Programs that tests wrote are in the temporary folder.
        if path.parent == self._own or path.is_relative_to(self._temporary):
            return True
        requested = Running.requested or frozenset()
        return (
            path.name in PROGRAMS
            or path.name.startswith("python")
            or any(path.name in RESOURCES[name].programs for name in requested)
        )

    def _forbid(self, what: str) -> None:
        message = f"a quick test {what}: request a resource, or mark the test slow"
        self.violations.append(message)
        raise ForbiddenError(message)


def _is_local(address: object) -> bool:
    if not isinstance(address, tuple):
        # A path of a Unix socket.
        return True
    host = address[0]
    if host is None:
        return True
    name = os.fsdecode(host)
    if name in _LOCAL_HOSTS:
        return True
    try:
        number = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return number.is_loopback or number.is_unspecified
