# SPDX-License-Identifier: Apache-2.0
"""The folder in which all processes of a service keep what they count (`metrics.py`).

It has a module of its own because the first process of `treeclaim serve` makes it, and counts nothing
itself.
"""

import atexit
import os
import shutil
import tempfile

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


_NOWHERE = "/proc/self/task"
"""A folder that is there, and in which nobody can make a file."""


def provide_folder() -> None:
    """Make a temporary folder, unless the environment names one; children find it there.

    Where none can be made, each process counts for itself, and nobody sees it (`metrics_files.py`).
    """
    if os.environ.get(FOLDER_VARIABLE):
        return
    try:
        folder = tempfile.mkdtemp(prefix="treeclaim-metrics-")
    except OSError:
        os.environ[FOLDER_VARIABLE] = _NOWHERE
        return
    os.environ[FOLDER_VARIABLE] = folder
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
