# SPDX-License-Identifier: Apache-2.0
"""Which endpoint a command talks to, and as whom."""

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from keystoneauth1 import session
from keystoneauth1.identity import generic

from treeclaim.cli.output import PORT, CommandError
from treeclaim.client import Client, ClientError, PlainTransport, SessionTransport
from treeclaim.client.transport import Transport

_LOCAL = f"http://127.0.0.1:{PORT}"


def add_endpoint_options(command: argparse.ArgumentParser) -> None:
    """Add the options that name an endpoint."""
    command.add_argument(
        "--endpoint",
        default=os.environ.get("TREECLAIM_ENDPOINT"),
        help="URL of any Placement API (or TREECLAIM_ENDPOINT); without it OS_CLOUD, then the "
        f"usual OS_* variables tell where to go, and without those it is {_LOCAL}",
    )
    command.add_argument(
        "--token",
        default=os.environ.get("OS_TOKEN", "admin"),
        help="token to send to --endpoint (or OS_TOKEN)",
    )
    command.add_argument(
        "--os-cloud",
        default=os.environ.get("OS_CLOUD"),
        metavar="NAME",
        help="a cloud of clouds.yaml (or OS_CLOUD); needs treeclaim[cloud]",
    )


@contextmanager
def client_of(options: argparse.Namespace) -> Iterator[Client]:
    """Give a client for the endpoint that a command's options and the environment name.

    Raises:
        CommandError: for whatever a call in the block fails with.
    """
    try:
        with Client(transport=_transport(options)) as client:
            yield client
    except ClientError as error:
        raise CommandError(str(error)) from error


@contextmanager
def client_at(url: str | None, token: str, cloud: str | None) -> Iterator[Client]:
    """Give a client for a URL and token, or for a cloud of clouds.yaml where there is no URL.

    Raises:
        CommandError: for whatever a call in the block fails with.
    """
    transport = PlainTransport(url, token) if url else _of_cloud(cloud or "")
    try:
        with Client(transport=transport) as client:
            yield client
    except ClientError as error:
        raise CommandError(str(error)) from error


def _transport(options: argparse.Namespace) -> Transport:
    if options.endpoint:
        return PlainTransport(options.endpoint, options.token)
    if options.os_cloud:
        return _of_cloud(options.os_cloud)
    if os.environ.get("OS_AUTH_URL"):
        return _of_environment(os.environ)
    return PlainTransport(_LOCAL, options.token)


def _of_cloud(name: str) -> Transport:
    try:
        # An optional package, and a heavy one.
        from openstack import config, exceptions  # noqa: PLC0415
    except ImportError:
        raise CommandError(
            "clouds.yaml needs openstacksdk: pip install 'treeclaim[cloud]'"
        ) from None
    try:
        region = config.OpenStackConfig().get_one(cloud=name)
        return SessionTransport(
            region.get_session(),
            region_name=region.get_region_name("placement"),
            interface=region.get_interface("placement"),
        )
    except exceptions.SDKException as error:
        raise CommandError(f"cloud {name}: {error}") from error


def _of_environment(environment: Mapping[str, str]) -> Transport:
    def value(*names: str) -> str | None:
        return next((environment[one] for one in names if environment.get(one)), None)

    common: dict[str, Any] = {
        "auth_url": value("OS_AUTH_URL"),
        "project_id": value("OS_PROJECT_ID"),
        "project_name": value("OS_PROJECT_NAME", "OS_TENANT_NAME"),
        "project_domain_id": value("OS_PROJECT_DOMAIN_ID"),
        "project_domain_name": value("OS_PROJECT_DOMAIN_NAME"),
        "system_scope": value("OS_SYSTEM_SCOPE"),
    }
    identity: Any
    token = value("OS_TOKEN")
    if token is not None:
        identity = generic.Token(token=token, **common)
    else:
        identity = generic.Password(
            user_id=value("OS_USER_ID"),
            username=value("OS_USERNAME"),
            password=value("OS_PASSWORD"),
            user_domain_id=value("OS_USER_DOMAIN_ID"),
            user_domain_name=value("OS_USER_DOMAIN_NAME"),
            **common,
        )
    return SessionTransport(
        session.Session(auth=identity, verify=value("OS_CACERT") or True),
        region_name=value("OS_REGION_NAME"),
        interface=value("OS_INTERFACE", "OS_ENDPOINT_TYPE"),
        endpoint_override=value("OS_PLACEMENT_ENDPOINT_OVERRIDE"),
    )
