# SPDX-License-Identifier: Apache-2.0
"""Whether all pairs were explored with the store as it is: `python -m tests.store.schedules.explored`.

A pair that was explored ends as it did as long as nothing changes that takes part in it: the code of
the store and of the values that it works on, the drivers, and the explorer. A digest of these is
written to `explored.txt` once all pairs were explored and none went wrong (`make test-all`). While it
holds, a run of all tests explores a share of them, another one for each commit; else it explores all.

What the digest does not know is the release of the databases: the share would notice, in time.
"""

import ast
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from tests.paths import ROOT

RECORD = Path(__file__).with_name("explored.txt")
"""Digest of what took part when all pairs were explored last."""

SHARE = 12
"""Of so many explorations one is made while the digest holds: what is left costs each process of a
run a minute, and a dozen commits try them all."""

_CODE = ("src/treeclaim/store", "src/treeclaim/model", "tests/store/schedules")
_DRIVERS = ("sqlalchemy==", "psycopg==", "psycopg-binary==", "pymysql==")


def digest(root=ROOT):
    """The digest of what takes part in an exploration, as hexadecimal text."""
    found = hashlib.sha256()
    for folder in _CODE:
        for path in sorted((root / folder).rglob("*.py")):
            found.update(f"{path.relative_to(root)}\n{_meaning(path)}\n".encode())
    for line in (root / "requirements/runtime.txt").read_text().splitlines():
        if line.startswith(_DRIVERS):
            found.update(f"{line.split()[0]}\n".encode())
    return found.hexdigest()


def _meaning(path):
    """A module without its comments, docstrings and form."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [part for part in node.body if not _is_text(part)]
    return ast.dump(tree)


def _is_text(part):
    return (
        isinstance(part, ast.Expr)
        and isinstance(part.value, ast.Constant)
        and isinstance(part.value.value, str)
    )


def holds():
    """Whether nothing has changed since all pairs were explored."""
    return RECORD.exists() and RECORD.read_text().strip() == digest()


def left_out(names):
    """Which of the names of explorations a run leaves out: none where something has changed.

    `TREECLAIM_PAIRS=all` has all of them explored, too.
    """
    if os.environ.get("TREECLAIM_PAIRS") == "all" or not names or not holds():
        return frozenset()
    return frozenset(names) - share_of(names, turn())


def share_of(names, number):
    """The share with this number: all shares together are all of the names."""
    return frozenset(sorted(names)[number % SHARE :: SHARE])


def turn():
    """Which share is explored: a number that changes with each commit."""
    asked = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return int(asked.stdout[:8] or "0", 16)


if __name__ == "__main__":
    if sys.argv[1:] == ["record"]:
        RECORD.write_text(f"{digest()}\n")
    print("All pairs were explored with this store." if holds() else "To be explored: all pairs.")
