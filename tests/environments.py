# SPDX-License-Identifier: Apache-2.0
"""Foreign software for tests: each in a virtual environment of its own, made once and kept.

The environments are in the user's cache folder, or where TREECLAIM_TEST_ENVIRONMENTS says.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from tests import authorities
from tests.resources import MISSING

_LAST_LINES = 5
_NPM_SECONDS = 300
_PIP_SECONDS = 1200
"""For one environment: packages may come slowly."""
_PEER_PACKAGES = ("openstack-placement", "gunicorn", "pymysql", "psycopg2-binary")


class NotInstallableError(Exception):
    """The packages cannot be installed; the message has the last lines of what pip said."""


@cache
def environment_of(name, *packages):
    """Return the folder of an environment with packages, made if it is missing.

    Without it the test that asks is skipped, and says so.
    """
    folder = _base() / name
    try:
        with alone_in(folder):
            if not (folder / "ready").exists():
                _make(folder, packages)
    except NotInstallableError as error:
        pytest.skip(f"{MISSING}{' '.join(packages)} cannot be installed: {error}")
    return folder


@cache
def node_packages(name, *packages):
    """Return the folder of Node's modules with some packages, made if it is missing.

    Without them, the test that asks is skipped, and says so.
    """
    folder = _base() / f"node-{name}"
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]
    with alone_in(folder):
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            result = subprocess.run(
                command, capture_output=True, text=True, timeout=_NPM_SECONDS, check=False
            )
            if result.returncode:
                pytest.skip(
                    f"{MISSING}{' '.join(packages)} cannot be installed: {result.stderr[-500:]}"
                )
            (folder / "ready").touch()
    return folder / "node_modules"


@cache
def peer_programs():
    """Return the folder with the programs of openstack-placement, installed if it is missing.

    The benchmark has them too. Without them the test that asks is skipped, and says so.
    """
    try:
        with alone_in(_base() / "placement"):
            return peer_environment() / "bin"
    except (subprocess.CalledProcessError, OSError) as error:
        pytest.skip(f"{MISSING}openstack-placement cannot be installed: {error}")


def _base():
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    default = cache_folder / "treeclaim-tests"
    return Path(os.environ.get("TREECLAIM_TEST_ENVIRONMENTS", default))


@contextmanager
def alone_in(folder):
    """Let other test processes wait until this one has made a folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with authorities.those_of_the_machine():
            yield


def _make(folder, packages):
    try:
        make_environment(folder, *packages)
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.output.splitlines() if not line.startswith("WARNING")]
        raise NotInstallableError(" / ".join(lines[-_LAST_LINES:])) from error
    (folder / "ready").touch()


def peer_environment() -> Path:
    """Return the folder of the peer's virtual environment, made if it is missing."""
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = Path(os.environ.get("TREECLAIM_PEER", base / "treeclaim-bench" / "placement"))
    ready = folder / "ready"
    if not ready.exists() or ready.read_text().split() != list(_PEER_PACKAGES):
        make_environment(folder, *_PEER_PACKAGES)
        ready.write_text("\n".join(_PEER_PACKAGES))
    return folder


def make_environment(folder: Path, *packages: str) -> None:
    """Make an environment with packages anew.

    By uv, which takes a second where pip takes twenty; where that cannot, because only pip knows where
    packages come from on this machine, by pip.

    Raises:
        subprocess.CalledProcessError: if neither can; `output` is what pip said.
    """
    # Remains of an interrupted installation.
    shutil.rmtree(folder, ignore_errors=True)
    python = str(folder / "bin" / "python")
    uv = shutil.which("uv", path=Path(sys.executable).parent)
    if uv is not None:
        try:
            _run(uv, "venv", "--quiet", "--python", sys.executable, str(folder))
            _run(uv, "pip", "install", "--quiet", "--python", python, *packages)
        except subprocess.CalledProcessError:
            shutil.rmtree(folder)
        else:
            return
    _run(sys.executable, "-m", "venv", str(folder))
    _run(python, "-m", "pip", "install", "--quiet", *packages)


def _run(*command: str) -> None:
    subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_PIP_SECONDS,
        check=True,
    )
