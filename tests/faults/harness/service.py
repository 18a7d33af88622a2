# SPDX-License-Identifier: Apache-2.0
"""`treeclaim serve` as a deployment runs it: several worker processes on a real database."""

import time
from contextlib import contextmanager

import httpx

from tests.servers import NO_CERTIFICATES, service_environment, serving
from tests.service import HEADERS


def client_of(url, **options):
    """An HTTP client with full rights."""
    return httpx.Client(
        base_url=url,
        headers=HEADERS,
        timeout=60,
        verify=NO_CERTIFICATES,
        trust_env=False,
        **options,
    )


ATTEMPTS = 40
"""Attempts of a request to a busy service, which says itself when to try again."""

_PAUSE = 0.5


def body_of(client, path, *, method="GET", pause=_PAUSE, **options):
    """The JSON of what is stored; a database that is busy or away for a moment is asked again.

    Raises:
        AssertionError: if it is another answer than 200, with its status and text.
    """
    for number in range(ATTEMPTS):
        answer = client.request(method, path, **options)
        if answer.status_code != 503 or number == ATTEMPTS - 1:
            break
        time.sleep(pause)
    assert answer.status_code == 200, (path, answer.status_code, answer.text, number + 1)
    return answer.json()


@contextmanager
def running(database, folder, workers=4, threads=4, prefix=(), **environment):
    """Run the service; yield it when it answers and has all its workers.

    Its warnings and errors are printed when the block fails, for the report of the test.
    """
    variables = service_environment(folder, database, **environment)
    options = [f"--workers={workers}", f"--threads={threads}"]
    with serving(variables, folder, *options, prefix=prefix) as service:
        try:
            # The first of them answers already while the others are born.
            service.await_workers(workers)
            yield service
        except BaseException:
            lines = service.log.read_text(errors="replace").splitlines()
            print(*(line for line in lines if " INFO " not in line), sep="\n")
            raise
