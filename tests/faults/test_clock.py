# SPDX-License-Identifier: Apache-2.0
"""The clock of the machine goes backwards and leaps ahead; claims do not depend on it."""

import shutil

import pytest

from tests.faults.harness.load import Load, build
from tests.faults.harness.service import running

WRITES = 30

pytestmark = pytest.mark.slow


def test_a_clock_that_goes_backwards_changes_nothing(tmp_path):
    faketime = shutil.which("faketime")
    if faketime is None:
        pytest.skip("not installed: apt-get install faketime")
    clock = tmp_path / "clock"
    clock.write_text("+0")
    # The file says what time it is, and is read at each question.
    environment = {
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    database = f"sqlite:///{tmp_path / 'placement.db'}"
    library = shutil.which("env")
    prefix = (library, f"LD_PRELOAD={preloaded(faketime)}")
    with running(database, tmp_path, prefix=prefix, **environment) as service:
        load = Load([service.url], build(service.url))
        with load:
            for leap in ("-7200", "+259200", "-432000"):
                load.wait_for(WRITES)
                clock.write_text(leap)
            load.wait_for(WRITES)
        load.judge()


def preloaded(faketime):
    """The library that the program would preload, the one for threads."""
    import subprocess

    shown = subprocess.run(
        [faketime, "-m", "-f", "+0", "printenv", "LD_PRELOAD"],
        capture_output=True,
        text=True,
        check=True,
    )
    return shown.stdout.strip().split(":")[-1]
