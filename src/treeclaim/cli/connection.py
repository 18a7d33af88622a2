# SPDX-License-Identifier: Apache-2.0
"""The endpoint and the credentials of a command."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from treeclaim.cli.output import PORT, CommandError, failures_at, warn
from treeclaim.client import Client, ClientError, Patience, UnreachableError, make_adapter

if TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.identity import BaseIdentityPlugin
    from keystoneauth1.session import Session

_LOCAL = f"http://127.0.0.1:{PORT}"
_TOKEN = "admin"  # noqa: S105 - what a service without authentication takes


ENDPOINT_OPTIONS = f"""
    | --endpoint URL   any Placement API (or TREECLAIM_ENDPOINT); without it OS_CLOUD, then the usual OS_* variables name it, and without those it is {_LOCAL}
    | --os-cloud NAME  a cloud of clouds.yaml (or OS_CLOUD); needs treeclaim[cloud]
    --token TOKEN      token to send to --endpoint (or OS_TOKEN; {_TOKEN} without both)
"""
"""Options that name an endpoint; they take precedence over the environment."""


@contextmanager
def open_client(options: argparse.Namespace) -> Iterator[Client]:
    """Open a client for the endpoint that a command's options and the environment name."""
    advice = "start a service with `treeclaim serve`, or name a running one with --endpoint or --os-cloud"
    with _failures_in_words(advice), _client(options) as client:
        yield client


@contextmanager
def open_client_of(end: str, options: argparse.Namespace) -> Iterator[Client]:
    """Open a client for one of two services.

    Args:
        end: Begins the names of the options, and of the variable `TREECLAIM_END_TOKEN`.
        options: With `END_url`, `END_token` and, for a cloud of clouds.yaml instead, `END_cloud`.
    """
    token, cloud = getattr(options, f"{end}_token"), getattr(options, f"{end}_cloud", None)
    if token and cloud:
        raise CommandError(
            f"--{end}-token is for --{end}; a cloud of clouds.yaml has its own authentication"
        )
    names = (f"TREECLAIM_{end.upper()}_TOKEN", "OS_TOKEN")
    tokens = [token, *(os.environ.get(name) for name in names), _TOKEN]
    with _failures_in_words("check its URL or cloud, and that the service runs"):
        client = (
            _client_of_cloud(cloud)
            if cloud
            else _client_at(getattr(options, f"{end}_url"), next(filter(None, tokens)))
        )
        with client:
            yield client


@contextmanager
def _failures_in_words(advice: str) -> Iterator[None]:
    try:
        yield
    except UnreachableError as error:
        raise CommandError(str(error), advice) from error
    except ClientError as error:
        raise CommandError(str(error)) from error


def _client(options: argparse.Namespace) -> Client:
    """Return a client of the endpoint that the options name, else Treeclaim's or OpenStack's variables.

    Without any of them it is the endpoint of this machine.
    """
    environment = os.environ
    url = options.endpoint or environment.get("TREECLAIM_ENDPOINT")
    cloud = options.os_cloud or (not url and environment.get("OS_CLOUD"))
    has_login = not url and (
        environment.get("OS_AUTH_TYPE") == "http_basic" or environment.get("OS_AUTH_URL")
    )
    if options.token and options.os_cloud:
        raise CommandError(
            "--token is for --endpoint; a cloud of clouds.yaml has its own authentication"
        )
    if options.token and (cloud or has_login):
        raise CommandError("--token needs --endpoint: the environment names a cloud")
    if cloud:
        return _client_of_cloud(cloud)
    if has_login:
        return _client_of_environment()
    return _client_at(url or _LOCAL, options.token or environment.get("OS_TOKEN") or _TOKEN)


def _client_at(url: str, token: str) -> Client:
    return Client(url, token, patience=_patience())


def _patience() -> Patience:
    return Patience(tell=lambda text: warn(f"treeclaim: {text}"))


@contextmanager
def region_of(cloud: str) -> Iterator[Any]:
    """Open a cloud of clouds.yaml by openstacksdk."""
    try:
        # An optional package. It, and keystoneauth1, are slow to import.
        from keystoneauth1.exceptions import ClientException  # noqa: PLC0415
        from openstack import config, exceptions  # noqa: PLC0415
        from yaml import YAMLError  # noqa: PLC0415
    except ImportError:
        raise CommandError(
            "clouds.yaml needs openstacksdk: pip install 'treeclaim[cloud]'"
        ) from None
    try:
        yield config.OpenStackConfig().get_one(cloud=cloud)
    except (exceptions.SDKException, ClientException, YAMLError, OSError, ValueError) as error:
        raise CommandError(f"cloud {cloud}: {error}") from error


def _client_of_cloud(name: str) -> Client:
    with region_of(name) as region:
        adapter = region_adapter(region, region.get_session(), "placement")
        return Client(adapter=adapter, patience=_patience())


def region_adapter(region: Any, session: "Session", service_type: str) -> "Adapter":
    """Return the adapter of a session to a service of a region of openstacksdk's."""
    from keystoneauth1.adapter import Adapter  # noqa: PLC0415 - slow to import

    return Adapter(
        session,
        service_type=service_type,
        region_name=region.get_region_name(service_type),
        interface=region.get_interface(service_type),
        endpoint_override=region.get_endpoint(service_type),
    )


def _client_of_environment() -> Client:
    """Return a client of the endpoint that the OS_* variables of openstackclient name."""
    from keystoneauth1 import exceptions, loading  # noqa: PLC0415 - slow to import

    environment = os.environ
    kind = environment.get("OS_AUTH_TYPE") or (
        "v3applicationcredential"
        if environment.get("OS_APPLICATION_CREDENTIAL_ID")
        else ("token" if environment.get("OS_TOKEN") else "password")
    )
    failures = (exceptions.ClientException, TypeError, ValueError)
    with failures_at(f"the OS_* variables (OS_AUTH_TYPE {kind})", failures):
        # keystoneauth1 reads the variable of an option for its default on a command line.
        identity: BaseIdentityPlugin = loading.get_plugin_loader(kind).load_from_options_getter(
            lambda option: option.argparse_default
        )
    session = loading.session.Session().load_from_options(
        auth=identity,
        insecure=environment.get("OS_INSECURE", "").lower() in {"1", "true", "yes", "on"},
        cacert=environment.get("OS_CACERT") or None,
        cert=environment.get("OS_CERT") or None,
        key=environment.get("OS_KEY") or None,
    )
    adapter = make_adapter(
        session,
        region_name=environment.get("OS_REGION_NAME") or None,
        interface=environment.get("OS_INTERFACE") or environment.get("OS_ENDPOINT_TYPE") or None,
        endpoint_override=environment.get("OS_PLACEMENT_ENDPOINT_OVERRIDE") or None,
    )
    return Client(adapter=adapter, patience=_patience())
