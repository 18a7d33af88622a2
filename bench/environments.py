# SPDX-License-Identifier: Apache-2.0
"""Virtual environments for software that is no dependency: openstack-placement, Keystone, Nova."""

import shutil
import subprocess
import sys
from pathlib import Path

_SECONDS = 1200
"""For one environment: packages may come slowly."""


def make_environment(folder: Path, *packages: str) -> None:
    """Make an environment with packages anew.

    By uv, which takes a second where pip takes twenty; where that cannot, because only pip knows where
    packages come from on this machine, by pip.

    Raises:
        subprocess.CalledProcessError: if neither can; `output` is what pip said.
    """
    # What an interrupted installation left behind.
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
        timeout=_SECONDS,
        check=True,
    )
