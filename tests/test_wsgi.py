# SPDX-License-Identifier: Apache-2.0
"""The application for any WSGI server: its warnings about too few threads."""

import subprocess
import sys

import pytest

from tests.servers import service_environment

START = "from treeclaim import wsgi; wsgi.start()"


def warnings_at_start(folder, **settings):
    """Start the service in a process as a WSGI server does; return its warnings about threads."""
    result = subprocess.run(
        [sys.executable, "-c", START],
        env=service_environment(folder, **settings),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    lines = (result.stdout + result.stderr).splitlines()
    return [line for line in lines if "WARNING treeclaim.wsgi" in line]


@pytest.mark.slow
@pytest.mark.parametrize(("threads", "number"), [(2, 1), (3, 0)])
def test_too_few_threads_give_a_warning_at_start(tmp_path, threads, number):
    warnings = warnings_at_start(tmp_path, OS_TREECLAIM__SERVER_THREADS=str(threads))
    assert len(warnings) == number
    assert all("reads are refused while a write waits" in text for text in warnings)
    assert all("Use 3 threads or more" in text for text in warnings)


@pytest.mark.slow
def test_server_without_threads_gives_no_warning(tmp_path):
    (tmp_path / "uwsgi.py").write_text("opt = {}\n")
    assert warnings_at_start(tmp_path) == []
