# SPDX-License-Identifier: Apache-2.0
"""The plugin of the `openstack` command, which imports it at every start (entry point `openstack.cli.extension`)."""

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treeclaim.client import Client

API_NAME = "treeclaim"
"""Name of the plugin, of the client manager's attribute, and in the entry point group `openstack.treeclaim.v1`."""

API_VERSION_OPTION = "os_treeclaim_api_version"
API_VERSIONS = ("1",)
DEFAULT_API_VERSION = "1"


def make_client(instance: Any) -> "Client":
    """Return a client of the cloud's placement endpoint, with the login of `openstack`."""
    from treeclaim.cli.connection import make_region_adapter  # noqa: PLC0415
    from treeclaim.client import Client  # noqa: PLC0415

    region = instance.sdk_connection.config
    return Client(adapter=make_region_adapter(region, instance.session))


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return the parser of `openstack` unchanged."""
    return parser
