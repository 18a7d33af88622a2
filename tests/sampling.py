# SPDX-License-Identifier: Apache-2.0
"""Long tests of which a run of all makes a share while nothing has changed that takes part in them.

A test that passed passes again as long as nothing changes that its result depends on. Of each `Sample`
a digest of that is written to `sampled.txt` once all of its tests have passed (`make test-all`). While
it holds, a run of all makes a share of them, another one for each commit; else it makes all.

What the digest does not know is the release of the databases: the share would notice, in time. What
the quick run makes is never left out.

    python -m tests.sampling            which samples all passed with this checkout
    python -m tests.sampling record     all have passed; with names, those samples have
"""

import ast
import hashlib
import os
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.paths import ROOT

RECORD = Path(__file__).with_name("sampled.txt")
"""Of each sample its name, and the digest of what took part when all of its tests passed last."""

WANTED = os.environ.get("TREECLAIM_SAMPLED", "")
"""`all` has all tests made that belong to samples, `share` the share whatever has changed."""

_DRIVERS = ("sqlalchemy==", "psycopg==", "psycopg-binary==", "pymysql==")
_DATABASE = ("src/treeclaim/store", "src/treeclaim/model")
"""All the SQL there is, and the values that it works on."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Tests that a run may leave out.

    Attributes:
        name: In the record.
        what: They are, in words for whoever reads the end of a run.
        share: One of so many is made.
        code: Folders and files that take part, besides the drivers.
    """

    name: str
    what: str
    share: int
    code: tuple[str, ...]


EXPLORATIONS = Sample(
    name="explorations",
    what="explorations of schedules of writes",
    share=48,
    code=(*_DATABASE, "tests/store/schedules"),
)
"""What is left costs each process of a run a minute, and four dozen commits try them all."""

HOLDS = Sample(
    name="holds",
    what="explorations of schedules of writes of holds",
    share=48,
    code=EXPLORATIONS.code,
)
"""Younger than the others, of which nothing may change without all being made again, their marks neither:
so `tests/store/conftest.py` marks them."""

HISTORIES = Sample(
    name="histories",
    what="parts of the random histories of writes of holds",
    share=48,
    code=(*_DATABASE, "tests/reference/holds.py", "tests/store/operations/test_holds.py"),
)
"""A judged run tries the same ones each time."""

SUITES = Sample(
    name="suites",
    what="requests of the suites over HTTP on PostgreSQL and MariaDB, that all were made on SQLite",
    share=4,
    code=(*_DATABASE, "tests/conformance", "docs/contract/95-worked-examples.md"),
)
"""Above the store nothing knows which database there is."""

DATABASES = Sample(
    name="databases",
    what="tests of the store, of faults and of the take-over on PostgreSQL, MariaDB and Galera",
    share=6,
    code=(*_DATABASE, "src/treeclaim/server", "tests/store", "tests/faults", "tests/takeover"),
)
"""Those on SQLite are all made, and so are those of other folders on each database."""

WORLDS = Sample(
    name="worlds",
    what="long tests of the search, most of them properties of random worlds",
    share=6,
    code=(
        "src/treeclaim/forest",
        "src/treeclaim/model",
        "tests/forest",
        "tests/properties",
        "tests/reference",
    ),
)
PAGES = Sample(
    name="pages",
    what="tests of the pages in a browser",
    share=4,
    code=("src/treeclaim/ui", "src/treeclaim/api", "tests/ui"),
)

SAMPLES = (EXPLORATIONS, HOLDS, HISTORIES, SUITES, DATABASES, WORLDS, PAGES)

_FOLDERS = {
    "tests/store": DATABASES,
    "tests/faults": DATABASES,
    "tests/takeover": DATABASES,
    "tests/forest": WORLDS,
    "tests/properties": WORLDS,
    "tests/ui": PAGES,
}
"""The sample to which tests without the mark belong; to DATABASES only those that name a server."""

_SERVERS = re.compile("postgresql|mariadb|galera")


def digest(sample, root=ROOT):
    """The digest of what takes part in the tests of a sample, as hexadecimal text."""
    found = hashlib.sha256()
    for part in sample.code:
        for path in _files(root / part):
            found.update(f"{path.relative_to(root)}\n{_meaning(path)}\n".encode())
    for line in (root / "requirements/runtime.txt").read_text().splitlines():
        if line.startswith(_DRIVERS):
            found.update(f"{line.split()[0]}\n".encode())
    return found.hexdigest()


def _files(place):
    """What is in a folder, but for what Python has compiled; a place that is not there is an error."""
    if not place.is_dir():
        return [place]
    return sorted(one for one in place.rglob("*") if one.is_file() and one.suffix != ".pyc")


def _meaning(path):
    """A module without its comments, docstrings and form; another file as it is."""
    content = path.read_bytes()
    return _meaning_of_module(content) if path.suffix == ".py" else content.hex()


@cache
def _meaning_of_module(content):
    tree = ast.parse(content)
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


def holds(sample):
    """Whether nothing has changed since all tests of a sample passed."""
    return _recorded().get(sample.name) == digest(sample)


def _recorded():
    lines = RECORD.read_text().splitlines() if RECORD.exists() else []
    return dict(line.split() for line in lines)


def record(samples):
    """Write down that all tests of these samples have passed."""
    known = _recorded() | {sample.name: digest(sample) for sample in samples}
    RECORD.write_text("".join(f"{name} {known[name]}\n" for name in sorted(known)))


def left_out(items):
    """Which tests a run leaves out, of those that the quick run does not make.

    A test belongs to a sample by the mark `sampled`: the sample, and the names of the parameters that
    make a unit, whose tests are made together or not at all; without such each test is one. A test
    without the mark belongs to that of its folder, if there is one.

    Returns:
        By sample the tests.
    """
    if WANTED == "all":
        return {}
    found = defaultdict(lambda: defaultdict(list))
    for item in items:
        marker = item.get_closest_marker("sampled")
        sample, *by = marker.args if marker else (sample_of(item.nodeid),)
        if sample:
            found[sample][_unit(item, by)].append(item)
    dropped = {}
    for sample, units in found.items():
        if WANTED == "share" or holds(sample):
            kept = share_of(units, turn(), sample.share)
            dropped[sample] = [item for unit in units.keys() - kept for item in units[unit]]
    return dropped


def sample_of(name):
    """The sample to which a test belongs by its folder, by its name as pytest has it; or None."""
    for folder, sample in _FOLDERS.items():
        if name.startswith(f"{folder}/") and (sample is not DATABASES or _SERVERS.search(name)):
            return sample
    return None


def _unit(item, by):
    if not by:
        return item.nodeid
    values = item.callspec.params
    return " ".join([item.path.name, *(str(values[name]) for name in by)])


def share_of(names, number, share):
    """The share with this number: all shares together are all of the names."""
    return frozenset(sorted(names)[number % share :: share])


@cache
def turn():
    """Which share is made: a number that changes with each commit."""
    asked = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return int(asked.stdout[:8] or "0", 16)


def main(arguments):
    """Say what holds; record it if that is asked for."""
    if arguments[:1] == ["record"]:
        record([one for one in SAMPLES if not arguments[1:] or one.name in arguments[1:]])
    for sample in SAMPLES:
        passed = "all passed with this checkout" if holds(sample) else "all are to be made"
        print(f"{sample.name}: {passed}")


if __name__ == "__main__":
    main(sys.argv[1:])
