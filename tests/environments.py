# SPDX-License-Identifier: Apache-2.0
"""Foreign software for tests: each in a virtual environment of its own, made once and kept.

The environments are in the user's cache folder.
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
_SECONDS = 1200
"""For one environment: packages may come slowly."""

_PEER_PACKAGES = ("openstack-placement", "gunicorn", "pymysql", "psycopg2-binary")


@cache
def environment_of(name, *packages):
    """Return the folder of an environment with packages, made if it is missing; skip the test if that fails."""
    with _skipped_without(packages):
        return _make_once(_own_folder() / name, make_environment, packages)


@cache
def node_packages(name, *packages):
    """Return the folder of Node's modules with some packages, made if it is missing; skip the test if that fails."""
    with _skipped_without(packages):
        folder = _make_once(_own_folder() / f"node-{name}", _make_node_packages, packages)
        return folder / "node_modules"


@cache
def peer_programs():
    """Return the folder with the programs of openstack-placement, as the benchmark has them, or skip the test."""
    with _skipped_without(_PEER_PACKAGES[:1]):
        return peer_environment() / "bin"


def peer_environment() -> Path:
    """Return the folder of the peer's virtual environment, made if it is missing.

    Raises:
        subprocess.CalledProcessError: if it cannot be made; `output` is what pip said.
    """
    default = _cache_folder() / "treeclaim-bench" / "placement"
    folder = Path(os.environ.get("TREECLAIM_PEER", default))
    return _make_once(folder, make_environment, _PEER_PACKAGES)


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))


def _own_folder():
    return _cache_folder() / "treeclaim-tests"


@contextmanager
def _skipped_without(packages):
    """Skip the test if packages cannot be installed."""
    try:
        yield
    except (subprocess.CalledProcessError, OSError) as error:
        lines = (getattr(error, "output", None) or str(error)).splitlines()
        messages = [line for line in lines if not line.startswith("WARNING")][-_LAST_LINES:]
        names = " ".join(packages)
        pytest.skip(f"{MISSING}{names} cannot be installed: {' / '.join(messages)}")


def _make_once(folder, make, packages):
    with alone_in(folder):
        if not (folder / "ready").exists():
            # Remains of an interrupted installation.
            shutil.rmtree(folder, ignore_errors=True)
            make(folder, *packages)
            (folder / "ready").touch()
    return folder


@contextmanager
def alone_in(folder):
    """Make a folder while other test processes wait for it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with authorities.those_of_the_machine():
            yield


def _make_node_packages(folder, *packages):
    folder.mkdir(parents=True)
    _run("npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages)


def make_environment(folder: Path, *packages: str) -> None:
    """Make an environment with packages.

    By uv, which takes a second where pip takes twenty; where that cannot, because only pip knows where
    packages come from on this machine, by pip.

    Raises:
        subprocess.CalledProcessError: if neither can; `output` is what pip said.
    """
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
        timeout=_SECONDS,
        check=True,
    )
