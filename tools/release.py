# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.release`: build the version that `treeclaim.__version__` names, and tag it.

Beside wheel and source there is a folder of wheels, from which pip installs Treeclaim and all that its
extras need without a package index: `pip install --no-index --find-links FOLDER treeclaim[cloud]`.

Nothing is built from a tree with changes, or without a section of that version in the changelog;
nothing is uploaded or pushed.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from treeclaim import __version__

ROOT = Path(__file__).parents[1]
WHEELS = "wheels"
EXTRAS = ("cloud", "openstack", "placement-names", "tracing")
"""What `treeclaim[…]` may have in brackets, but for those that work on the code."""


class NotReadyError(Exception):
    """Something is to be done before the release."""


def main() -> int:
    """Check, build, and tag."""
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
    pinned.

    Args:
        source: The source tree.
        folder: Where the wheels are put.
    """
    pins = re.findall(
        r"^\S+==\S+", (source / "requirements" / "dev.txt").read_text(), re.MULTILINE
    )
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("\n".join(pins))
        constraints.flush()
        _run(
            source,
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"),
            *("--constraint", constraints.name, "--wheel-dir", str(folder)),
            *("./deploy/placement-names", f".[{','.join(EXTRAS)}]"),
        )


def require_ready(folder: Path, version: str) -> None:
    """Check everything that must hold before a release is built.

    Raises:
        NotReadyError: with what is to be done.
    """
    if _run(folder, "git", "status", "--porcelain"):
        raise NotReadyError("There are changes that are not committed.")
    if _run(folder, "git", "tag", "--list", f"v{version}"):
        raise NotReadyError(f"v{version} is tagged already; raise __version__.")
    if not section_of((folder / "CHANGELOG.md").read_text(), version):
        raise NotReadyError(f"CHANGELOG.md has no section '## {version} - <date>'.")


def section_of(changelog: str, version: str) -> str | None:
    """Return what a changelog says of a version; None without a dated section of it."""
    heading = rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)"
    found = re.search(heading, changelog, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else None


def _run(folder: Path, *command: str) -> str:
    return subprocess.run(
        command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
