# SPDX-License-Identifier: Apache-2.0
"""Who lives: the servers that Nova lists, or what a file says."""

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from keystoneauth1 import adapter
from keystoneauth1.exceptions import ClientException

from treeclaim.cli.output import CommandError

NOVA = "nova"

_INSTANCE = "INSTANCE"
"""The type that Nova gives its servers, and that lines of a plain file have."""

_MICROVERSION = "2.69"
"""Of the compute API: from here on servers are listed too whose cell does not answer. Without them
they would look like orphans."""

_SERVERS = "/servers"
_PAGE = 1_000


def living_from(options: argparse.Namespace, source: str) -> dict[str, list[str]]:
    """Return the uuids of those that live, by type of consumer.

    Args:
        options: Which cloud is meant.
        source: `nova`, or the path of a file.

    Raises:
        CommandError: if they cannot be found out.
    """
    if source == NOVA:
        return {_INSTANCE: list(_servers(_compute(options)))}
    return _of_file(Path(source))


def _of_file(path: Path) -> dict[str, list[str]]:
    """Read a JSON object of lists by type, or lines each of which is the uuid of a server."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {error}") from error
    if not text.lstrip().startswith("{"):
        return {_INSTANCE: text.split()}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from error
    if not all(isinstance(uuids, list) for uuids in found.values()):
        raise CommandError(f'{path}: {{"INSTANCE": [uuid, …], …}} is expected')
    return {str(name): [str(uuid) for uuid in uuids] for name, uuids in found.items()}


def _compute(options: argparse.Namespace) -> adapter.Adapter:
    """Return what talks to the compute API of the cloud."""
    name = options.os_cloud or os.environ.get("OS_CLOUD")
    if not name:
        raise CommandError(
            "--living-from nova needs a cloud of clouds.yaml: --os-cloud or OS_CLOUD"
        )
    try:
        # An optional package, and a heavy one.
        from openstack import config, exceptions  # noqa: PLC0415
    except ImportError:
        raise CommandError(
            "clouds.yaml needs openstacksdk: pip install 'treeclaim[cloud]'"
        ) from None
    try:
        region = config.OpenStackConfig().get_one(cloud=name)
        return adapter.Adapter(
            region.get_session(),
            service_type="compute",
            region_name=region.get_region_name("compute"),
            interface=region.get_interface("compute"),
            endpoint_override=region.get_endpoint("compute"),
        )
    except (exceptions.SDKException, ClientException, OSError, ValueError) as error:
        raise CommandError(f"cloud {name}: {error}") from error


def _servers(compute: adapter.Adapter) -> Iterator[str]:
    """Yield the uuids of all servers of all projects, page by page."""
    query = {"all_tenants": "True", "limit": str(_PAGE)}
    while True:
        page = _page(compute, query)
        for server in page["servers"]:
            yield str(server["id"])
        following = [one["href"] for one in page.get("servers_links", ()) if one["rel"] == "next"]
        if not following:
            return
        query["marker"] = parse_qs(urlsplit(following[0]).query)["marker"][0]


def _page(compute: adapter.Adapter, query: dict[str, str]) -> dict[str, Any]:
    try:
        answer = compute.get(f"{_SERVERS}?{urlencode(query)}", microversion=_MICROVERSION)
        found: dict[str, Any] = answer.json()
        if "servers" not in found:
            raise ValueError(f"{answer.text[:80]!r}")  # noqa: TRY301
    except (ClientException, ValueError, KeyError, TypeError) as error:
        raise CommandError(f"the compute API does not list its servers: {error}") from error
    return found
