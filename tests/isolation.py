# SPDX-License-Identifier: Apache-2.0
"""Isolates quick tests from other programs and hosts.

An audit hook checks each start of a program and each connection. A violation raises an error at once, and fails the
test at its end even if the error was handled. `PATH` contains only a short list of programs and the requested
resources, so started programs are restricted too.
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
"""Programs that every Unix has."""

_LAUNCHES = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn")
_LOCAL_HOSTS = ("", "localhost")


class ForbiddenError(Exception):
    """A quick test started a forbidden program, or connected to another host."""


class Isolation:
    """A pytest plugin for the quick tier.

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
        """Restrict the programs that a test may start."""
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
        """Fail the test after a violation."""
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
        # Tests write programs into the temporary folder.
        if path.parent == self._own or path.is_relative_to(self._temporary):
            return True
        requested = Running.requested or frozenset()
        return (
            path.name in PROGRAMS
            or path.name.startswith("python")
            or any(path.name in RESOURCES[name].programs for name in requested)
        )

    def _forbid(self, violation: str) -> None:
        message = f"a quick test {violation}: request a resource, or mark the test slow"
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
