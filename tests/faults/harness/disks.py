# SPDX-License-Identifier: Apache-2.0
"""File systems with little room."""

import subprocess
from contextlib import contextmanager, suppress


@contextmanager
def small_disk(folder, size):
    """Mount a file system of so many bytes at a new folder, and yield the folder."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder):
    """Leave no room on a disk; return the file to remove for some."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as output, suppress(OSError):
        while output.write(b"x" * 4096):
            pass
    return filler
