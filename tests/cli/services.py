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
def run_service(folder):
    """Run a service behind the server of `treeclaim serve` for a block, in this process.

    It starts no processes, unlike `tests.servers.serving`, as that takes longer than most modules.

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


def open_client(environment):
    """Return a client of the service that an environment names."""
    return Client(environment["TREECLAIM_ENDPOINT"], "admin")


@contextmanager
def run_service_with_hosts(folder, *entries):
    """Run a service with some providers, entries of POST /treeclaim/providers, for a block."""
    with run_service(folder) as environment:
        with open_client(environment) as client:
            client.apply_providers(entries)
        yield environment


def claim_vcpu(environment, consumer, at, amount, **members):
    """Claim VCPU of a provider for a consumer, with further members of the claim."""
    body = claim_of({at: {"resources": {"VCPU": amount}}}, **members)
    with open_client(environment) as client:
        client.call("PUT", f"/allocations/{consumer}", body, extended=True)


def run_command(environment, *arguments, code=0):
    """Run a command that must end with a status; return its output."""
    result = call(environment, *arguments)
    assert result.returncode == code, (result.stdout, result.stderr)
    return result.stdout


def run_successful_command(environment, *arguments):
    """Run a command that must succeed; return its output."""
    return run_command(environment, *arguments)


def run_refused_command(environment, *arguments, code=1):
    """Run a command that must fail with a message; return the message."""
    result = call(environment, *arguments)
    assert result.returncode == code, (result.stdout, result.stderr)
    assert "Traceback" not in result.stderr
    return result.stderr
