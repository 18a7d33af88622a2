# SPDX-License-Identifier: Apache-2.0
"""A service that commands talk to, shared by the tests of a module, and shorthands for both."""

from contextlib import contextmanager

from tests.cli.processes import call
from tests.servers import service_environment, serving, usual_environment
from treeclaim.client import Client


@contextmanager
def served(folder, url=None):
    """Run a service for a block, at a free port if no URL is given.

    Yields the environment of commands that talk to it.
    """
    with serving(service_environment(folder), folder, url=url) as server:
        yield usual_environment(folder, TREECLAIM_ENDPOINT=server.url)


def client_in(environment):
    """Return a client of the service that an environment names."""
    return Client(environment["TREECLAIM_ENDPOINT"], "admin")


def succeed(environment, *arguments):
    """Run a command that has to succeed; returns what it prints."""
    done = call(environment, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(environment, *arguments, code=1):
    """Run a command that has to be refused in words; returns these."""
    done = call(environment, *arguments)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stderr
