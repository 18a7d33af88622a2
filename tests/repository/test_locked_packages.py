# SPDX-License-Identifier: Apache-2.0
"""Packages from an index are the reviewed ones: pinned, and known by their hashes."""

import re

import pytest

from tests.paths import ROOT

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
INSTALLING = [ROOT / "Makefile", ROOT / "deploy" / "Containerfile", ROOT / "tools" / "pythons.sh"]
"""Files that install the service, or test and build it."""


def entries(text):
    """The requirements of a lock, each with the options behind it."""
    joined = text.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_package_is_pinned_and_has_its_hashes(lock):
    result = entries(lock.read_text())
    assert result
    for entry in result:
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==[\w.!+]+ ", entry), entry
        assert re.search(r" --hash=sha256:[0-9a-f]{64}( |$)", entry), entry


def commands(text):
    """The commands by which packages are installed or built."""
    joined = text.replace("\\\n", " ").replace("$(INSTALL)", "pip install")
    lines = [line for line in joined.splitlines() if not line.lstrip().startswith("#")]
    parts = [part for line in lines for part in re.split(r"&&|\|\||;", line)]
    return [part for part in parts if re.search(r"\bpip (install|wheel) .*(-r|\.)", part)]


@pytest.mark.parametrize("path", INSTALLING, ids=lambda path: path.name)
def test_install_commands_require_hashes(path):
    """A build of our own package needs an environment too, which would be filled from the index.

    A lock names all packages. Without `--no-deps` pip resolves them again and may choose a newer
    release of a package that is requested with an extra, which has no hash.
    """
    unpinned = [command for command in commands(path.read_text()) if ":=" not in command]
    assert unpinned
    for command in unpinned:
        assert "--no-deps" in command, command
        is_locked = "--require-hashes" in command and "--requirement" in command
        is_own = "--no-build-isolation" in command or ".whl" in command
        assert is_locked or is_own, command
