# SPDX-License-Identifier: Apache-2.0
"""`treeclaim serve` as a deployment runs it: several worker processes on a real database."""

from contextlib import contextmanager

import httpx

from tests.servers import NO_CERTIFICATES, eventually, service_environment, serving
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


def body_of(client, path, method="GET", **options):
    """Return JSON from the service; repeat the request while the database is busy or away."""
    answers = []

    def is_answered():
        answers.append(client.request(method, path, **options))
        return answers[-1].status_code != 503

    eventually(is_answered, path, pause=0.5)
    assert answers[-1].status_code == 200, (path, answers[-1].status_code, answers[-1].text)
    return answers[-1].json()


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
