# SPDX-License-Identifier: Apache-2.0
"""The endpoint and the credentials of a command."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from treeclaim.cli.output import PORT, CommandError, convert_failures, warn
from treeclaim.client import Client, ClientError, Patience, UnreachableError, make_adapter
from treeclaim.client.session import PLACEMENT

if TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.identity import BaseIdentityPlugin
    from keystoneauth1.session import Session

_LOCAL = f"http://127.0.0.1:{PORT}"
_TOKEN = "admin"  # noqa: S105 - accepted by a service without authentication


ENDPOINT_OPTIONS = f"""
    | --endpoint URL   URL of a Placement API (or TREECLAIM_ENDPOINT); default: the cloud of OS_CLOUD or of the other OS_* variables, else {_LOCAL}
    | --os-cloud NAME  a cloud of clouds.yaml (or OS_CLOUD); needs treeclaim[cloud]
    --token TOKEN      token for --endpoint (or OS_TOKEN; default: {_TOKEN})
"""
"""Options of the endpoint; they take precedence over the environment."""


@contextmanager
def open_client(options: argparse.Namespace) -> Iterator[Client]:
    """Open a client of the endpoint in the options or the environment."""
    advice = "start a service with `treeclaim serve`, or name a running one with --endpoint or --os-cloud"
    with _convert_client_errors(advice), _make_client(options) as client:
        yield client


@contextmanager
def open_service_client(end: str, options: argparse.Namespace) -> Iterator[Client]:
    """Open a client of one of two services; `end` is the prefix of its options `END_url`, `END_cloud` and `END_token`."""
    token, cloud = getattr(options, f"{end}_token"), getattr(options, f"{end}_cloud", None)
    if token and cloud:
        raise CommandError(
            f"--{end}-token is for --{end}; a cloud of clouds.yaml has its own authentication"
        )
    names = (f"TREECLAIM_{end.upper()}_TOKEN", "OS_TOKEN")
    tokens = [token, *(os.environ.get(name) for name in names), _TOKEN]
    with _convert_client_errors("check its URL or cloud, and that the service runs"):
        client = (
            _make_cloud_client(cloud)
            if cloud
            else _make_url_client(getattr(options, f"{end}_url"), next(filter(None, tokens)))
        )
        with client:
            yield client


@contextmanager
def _convert_client_errors(advice: str) -> Iterator[None]:
    try:
        yield
    except UnreachableError as error:
        raise CommandError(str(error), advice) from error
    except ClientError as error:
        raise CommandError(str(error)) from error


def _make_client(options: argparse.Namespace) -> Client:
    """Return a client of the endpoint of the options, of the environment, or of this machine, in this order."""
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
        return _make_cloud_client(cloud)
    if has_login:
        return _make_environment_client()
    return _make_url_client(url or _LOCAL, options.token or environment.get("OS_TOKEN") or _TOKEN)


def _make_url_client(url: str, token: str) -> Client:
    return Client(url, token, patience=_make_patience())


def _make_patience() -> Patience:
    return Patience(tell=lambda text: warn(f"treeclaim: {text}"))


@contextmanager
def open_region(cloud: str) -> Iterator[Any]:
    """Load a cloud of clouds.yaml with openstacksdk."""
    try:
        # openstacksdk is optional; both packages are slow to import.
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


def _make_cloud_client(name: str) -> Client:
    with open_region(name) as region:
        adapter = make_region_adapter(region, region.get_session())
        return Client(adapter=adapter, patience=_make_patience())


def make_region_adapter(
    region: Any, session: "Session", service_type: str = PLACEMENT
) -> "Adapter":
    """Return the adapter of a session to a service of openstacksdk's region."""
    return make_adapter(
        session,
        service_type,
        region_name=region.get_region_name(service_type),
        interface=region.get_interface(service_type),
        endpoint_override=region.get_endpoint(service_type),
    )


def _make_environment_client() -> Client:
    """Return a client of the endpoint in the OS_* variables of openstackclient."""
    from keystoneauth1 import exceptions, loading  # noqa: PLC0415 - slow to import

    environment = os.environ
    kind = environment.get("OS_AUTH_TYPE") or (
        "v3applicationcredential"
        if environment.get("OS_APPLICATION_CREDENTIAL_ID")
        else ("token" if environment.get("OS_TOKEN") else "password")
    )
    failures = (exceptions.ClientException, TypeError, ValueError)
    with convert_failures(f"the OS_* variables (OS_AUTH_TYPE {kind})", failures):
        # keystoneauth1 reads an option's environment variable for its argparse default.
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
    return Client(adapter=adapter, patience=_make_patience())
