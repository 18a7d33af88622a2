# SPDX-License-Identifier: Apache-2.0
"""Software that only some tests need: a test requests each resource by the fixture of its name.

The requested fixtures decide the tier of a test, whether it can run on this machine, and the programs that it may
start. The mark `needs` requests resources for a parameter. A test that starts a server without a request fails.
"""

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from tests.paths import ROOT

MISSING = "missing: "
"""Prefix of the reason of a skip for missing software."""

_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))


class MissingResourceError(Exception):
    """Software is not installed; the message explains how to install it."""


class UndeclaredResourceError(Exception):
    """A test started software without requesting its fixture."""


@dataclass(frozen=True, slots=True)
class Resource:
    """Software of the machine.

    Attributes:
        package: Its Debian packages.
        programs: Programs that must be installed, and that a test may start.
        files: Patterns of files that must exist, relative to the root.
        condition: Raises `MissingResourceError` if the machine cannot run it; None for no further condition.
        in_quick_tier: Whether the quick tier runs tests that request it.
    """

    package: str
    programs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    condition: Callable[[], object] | None = None
    in_quick_tier: bool = False

    def look_up(self) -> None:
        """Raise `MissingResourceError` if a part is not installed."""
        lacking = [name for name in self.programs if shutil.which(name, path=_PATH) is None]
        lacking += [pattern for pattern in self.files if not any(Path("/").glob(pattern))]
        if lacking:
            raise MissingResourceError(f"{lacking[0]}: apt-get install {self.package}")
        if self.condition is not None:
            self.condition()


def _require_history() -> None:
    if not (ROOT / ".git").exists():
        raise MissingResourceError("the history of this checkout")


def _require_peer() -> None:
    # Imported here, because `environments` imports this module.
    from tests.environments import peer_programs

    peer_programs()


def _require_mounts() -> None:
    if os.geteuid() != 0:
        raise MissingResourceError("the right to mount file systems: run the tests as root")


_quick = partial(Resource, in_quick_tier=True)

RESOURCES = {
    "bash": _quick("bash", ("bash",)),
    "curl": Resource("curl", ("curl",)),
    "browser": Resource("chromium", ("chromium",)),
    "faketime": Resource("faketime", ("faketime",)),
    "galera": Resource(
        "galera-4 mariadb-server rsync socat",
        ("mariadbd", "mariadb-install-db", "rsync", "socat"),
        ("usr/lib/**/libgalera_smm.so",),
    ),
    "git": _quick("git", ("git",)),
    "history": _quick("git", ("git",), condition=_require_history),
    # `environments.py` installs the packages of Keystone and of `peer`, openstack-placement.
    "keystone": Resource("python3-venv"),
    "logrotate": Resource("logrotate", ("logrotate",)),
    "mariadb": Resource("mariadb-server", ("mariadbd", "mariadb-install-db", "mariadb-dump")),
    "memcached": Resource("memcached", ("memcached",)),
    "mounts": Resource("mount", ("mount", "umount"), condition=_require_mounts),
    "node": Resource("nodejs npm", ("node", "npm")),
    "openssl": _quick("openssl", ("openssl",)),
    "peer": Resource("python3-venv", condition=_require_peer),
    "pgbouncer": Resource("pgbouncer", ("pgbouncer",)),
    "postgresql": Resource("postgresql", (), ("usr/lib/postgresql/*/bin/initdb",)),
    "promtool": Resource("prometheus", ("promtool",)),
    "systemd": Resource("systemd", ("systemd-analyze",)),
    "web_server": Resource(
        "libapache2-mod-wsgi-py3", ("apache2",), ("usr/lib/apache2/modules/mod_wsgi.so*",)
    ),
    "zsh": Resource("zsh", ("zsh",)),
}


class Running:
    """The running test.

    Attributes:
        requested: The resources that it requests; None outside of tests, as in the benchmark.
    """

    requested: ClassVar[frozenset[str] | None] = None


@cache
def _look_up(name: str) -> str:
    try:
        RESOURCES[name].look_up()
    except MissingResourceError as missing:
        return str(missing)
    return ""


def require(name: str) -> None:
    """Raise an error if a resource is not installed, or if the running test does not request it."""
    if Running.requested is not None and name not in Running.requested:
        raise UndeclaredResourceError(
            f"request the fixture {name!r}, or mark a parameter needs({name!r})"
        )
    if lacking := _look_up(name):
        raise MissingResourceError(lacking)


def program_of(name: str) -> str:
    """Return the path of a program, also from the folders of system programs."""
    path = shutil.which(name, path=_PATH)
    if path is None:
        raise MissingResourceError(name)
    return path


def needs(*names: str) -> pytest.MarkDecorator:
    """Return the mark of a parameter that needs resources."""
    return pytest.mark.needs(*names)


def requested_by(item: pytest.Item) -> frozenset[str]:
    """Return the names of the resources that a test requests."""
    return frozenset(getattr(item, "fixturenames", ())) & RESOURCES.keys()


def request_marked(item: pytest.Item) -> None:
    """Prepend the resources of the marks `needs` to the fixtures of a test."""
    marked = {name for mark in item.iter_markers("needs") for name in mark.args}
    if isinstance(item, pytest.Function) and marked:
        item.fixturenames = [*sorted(marked), *item.fixturenames]


def in_quick_tier(item: pytest.Item) -> bool:
    """Return whether the quick tier has all resources that a test requests."""
    return all(RESOURCES[name].in_quick_tier for name in requested_by(item))


def _fixture_of(name: str) -> object:
    @pytest.fixture(scope="session", name=name)
    def resource() -> None:
        if lacking := _look_up(name):
            pytest.skip(MISSING + lacking)

    return resource


FIXTURES = ModuleType("resource_fixtures")
vars(FIXTURES).update({name: _fixture_of(name) for name in RESOURCES})
"""A pytest plugin with a fixture for each resource."""


def link_programs(programs: Iterable[str], folder: Path) -> str:
    """Link programs into a folder, which is created if necessary; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    for program in programs:
        link = folder / program
        if (path := shutil.which(program, path=_PATH)) and not link.exists():
            link.symlink_to(path)
    return str(folder)
