# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.release`: build the version that `treeclaim.__version__` names, and tag it.

Beside wheel and source there is a folder of wheels, from which pip installs Treeclaim and all that its
extras need without a package index: `pip install --no-index --find-links FOLDER treeclaim[service]`.

Nothing is built from a tree with changes, or without a section of that version in the changelog;
nothing is uploaded or pushed.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from treeclaim import __version__

ROOT = Path(__file__).parents[1]
WHEELS = "wheels"
EXTRAS = ("service", "cloud", "openstack", "placement-names", "tracing")
"""Extras of `treeclaim[…]`, without those for work on the code."""


_OWN_PACKAGE = "treeclaim-placement-names"
"""Requirements of an extra that are made from this tree."""


class NotReadyError(Exception):
    """Something is to be done before the release."""


def main() -> int:
    """Check, build, and tag; with `--wheels`, only build the folder of wheels."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--wheels", action="store_true", help="only build wheels, in dist/wheels")
    if parser.parse_args().wheels:
        build_wheels(ROOT, ROOT / "dist" / WHEELS)
        return 0
    try:
        require_ready(ROOT, __version__)
    except NotReadyError as reason:
        print(reason, file=sys.stderr)
        return 1
    _run(ROOT, sys.executable, "-m", "build", "--outdir", f"dist/{__version__}")
    build_wheels(ROOT, ROOT / "dist" / __version__ / WHEELS)
    notes = section_of((ROOT / "CHANGELOG.md").read_text(), __version__)
    _run(ROOT, "git", "tag", "--annotate", f"v{__version__}", "--message", notes or "")
    print(
        f"Built in dist/{__version__} and tagged v{__version__}; push the tag and upload the files."
    )
    return 0


def build_wheels(source: Path, folder: Path) -> None:
    """Make a folder with the wheels of Treeclaim and of all that it and its extras need.

    They are for the Python and the kind of machine on which this runs, at the versions that are
    pinned; each file that is taken from an index has a hash that `requirements/` names.

    Args:
        source: The source tree.
        folder: Where the wheels are put.
    """
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pins:
        pins.write(locked(source))
        pins.flush()
        take(Path(pins.name), folder)
    _wheels(source, folder, "./deploy/placement-names", ".")
    (folder / "requirements.txt").write_text(_service_requirements(source, folder))


def _service_requirements(source: Path, folder: Path) -> str:
    """Return the wheels that the service needs without other extras, each with its hash."""
    needed_names = _find_requirements(source, ("service",)) | {"treeclaim"}
    lines = []
    for wheel in sorted(folder.glob("*.whl")):
        name, version, *_ = parse_wheel_filename(wheel.name)
        if name in needed_names:
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
            lines.append(f"{name}=={version} --hash=sha256:{digest}\n")
    return "".join(lines)


def take(pins: Path, folder: Path) -> None:
    """Put the wheels of pinned packages into a folder; fails if one of them has another hash."""
    _wheels(ROOT, folder, "--require-hashes", "--requirement", str(pins))


def locked(source: Path) -> str:
    """Return the lock's entries, with hashes, for the dependencies of Treeclaim and its extras on this machine.

    Raises:
        NotReadyError: if something has none.
    """
    text = (source / "requirements" / "dev.txt").read_text()
    entries = {
        entry.partition("==")[0]: entry for entry in re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    }
    needed_names = _find_requirements(source)
    if needed_names - entries.keys():
        raise NotReadyError(
            f"Not locked: {', '.join(sorted(needed_names - entries.keys()))}; make lock"
        )
    return "".join(entries[name] for name in sorted(needed_names))


def _find_requirements(source: Path, extras: Sequence[str] = EXTRAS) -> set[str]:
    """Return the names of all packages that are needed, as those that are installed here say it."""
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"]]
    texts += [text for extra in extras for text in project["optional-dependencies"][extra]]
    pending_requirements = [(Requirement(text), {""}) for text in texts]
    requirements: dict[str, set[str]] = {}
    while pending_requirements:
        requirement, active_extras = pending_requirements.pop()
        marker = requirement.marker
        if marker is not None and not any(
            marker.evaluate({"extra": extra}) for extra in active_extras
        ):
            continue
        name = canonicalize_name(requirement.name)
        new_extras = {"", *requirement.extras} - requirements.setdefault(name, set())
        requirements[name] |= new_extras
        if new_extras and name != _OWN_PACKAGE:
            pending_requirements += [
                (Requirement(text), new_extras) for text in metadata.requires(name) or ()
            ]
    return requirements.keys() - {_OWN_PACKAGE}


def _wheels(source: Path, folder: Path, *requirements: str) -> None:
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check")
    _run(source, *pip, "--no-deps", "--wheel-dir", str(folder), *requirements)


def require_ready(folder: Path, version: str) -> None:
    """Check everything that must hold before a release is built.

    Raises:
        NotReadyError: with the necessary step.
    """
    if _run(folder, "git", "status", "--porcelain"):
        raise NotReadyError("There are changes that are not committed.")
    if _run(folder, "git", "tag", "--list", f"v{version}"):
        raise NotReadyError(f"v{version} is tagged already; raise __version__.")
    if not section_of((folder / "CHANGELOG.md").read_text(), version):
        raise NotReadyError(f"CHANGELOG.md has no section '## {version} - <date>'.")


def section_of(changelog: str, version: str) -> str | None:
    """Return the changelog's section of a version; None without a dated section of it."""
    heading = rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)"
    match = re.search(heading, changelog, re.MULTILINE | re.DOTALL)
    return match[1].strip() if match else None


def _run(folder: Path, *command: str) -> str:
    return subprocess.run(
        command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
