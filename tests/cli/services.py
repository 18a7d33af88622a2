# SPDX-License-Identifier: Apache-2.0
"""A service that commands talk to, shared by the tests of a module, and shorthands for both."""

from contextlib import contextmanager

from tests.bodies import claim_of
from tests.cli.processes import call
from tests.server.fronts import running
from tests.servers import usual_environment
from tests.service import fresh_database, start_on
from treeclaim.client import Client

_THREADS = 8
"""Threads of the service: more than a command has connections."""


@contextmanager
def served(folder):
    """Run a service behind the server of `treeclaim serve` for a block, in this process.

    To start its processes takes longer than most modules take; that is for `tests.servers.serving`.

    Args:
        folder: Where its database is.

    Yields:
        The environment of commands that talk to it.
    """
    home = folder / "of-the-service"
    home.mkdir()
    with (
        start_on(fresh_database(home), home) as application,
        running(application, threads=_THREADS) as server,
    ):
        endpoint = f"http://127.0.0.1:{server.address[1]}"
        yield usual_environment(folder, TREECLAIM_ENDPOINT=endpoint)


def client_in(environment):
    """Return a client of the service that an environment names."""
    return Client(environment["TREECLAIM_ENDPOINT"], "admin")


@contextmanager
def served_hosts(folder, *entries):
    """Run a service with some providers, entries of POST /treeclaim/providers, for a block."""
    with served(folder) as environment:
        with client_in(environment) as client:
            client.apply_providers(entries)
        yield environment


def hold(environment, consumer, at, amount, **members):
    """Give a consumer VCPU of a provider; members of the claim may be other ones."""
    body = claim_of({at: {"resources": {"VCPU": amount}}}, **members)
    with client_in(environment) as client:
        client.call("PUT", f"/allocations/{consumer}", body, extended=True)


def output_of(environment, *arguments, code=0):
    """Run a command that must end with a status; return its output."""
    result = call(environment, *arguments)
    assert result.returncode == code, (result.stdout, result.stderr)
    return result.stdout


def succeed(environment, *arguments):
    """Run a command that must succeed; return its output."""
    return output_of(environment, *arguments)


def refused(environment, *arguments, code=1):
    """Run a command that has to be refused in words; returns these."""
    result = call(environment, *arguments)
    assert result.returncode == code, (result.stdout, result.stderr)
    assert "Traceback" not in result.stderr
    return result.stderr
