# SPDX-License-Identifier: Apache-2.0
"""Who lives: the servers that Nova lists, or what a file says."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from keystoneauth1 import adapter

from treeclaim.cli.cloud.compute import PAGE, page
from treeclaim.cli.output import CommandError, reason_of

NOVA = "nova"

_INSTANCE = "INSTANCE"
"""The type that Nova gives its servers, and that lines of a plain file have."""

_MICROVERSION = "2.69"
"""Of the compute API: from here on servers are listed too whose cell does not answer. Without them
they would look like orphans."""


def living_from(source: str, compute: Callable[[], adapter.Adapter]) -> dict[str, list[str]]:
    """Return the uuids of those that live, by type of consumer.

    Args:
        source: `nova`, or the path of a file.
        compute: Gives what talks to the compute API.

    Raises:
        CommandError: if they cannot be found out.
    """
    if source == NOVA:
        return {_INSTANCE: list(_servers(compute()))}
    return _of_file(Path(source))


def _of_file(path: Path) -> dict[str, list[str]]:
    """Read a JSON object of lists by type, or lines each of which is the uuid of a server."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {reason_of(error)}") from error
    if not text.lstrip().startswith("{"):
        return {_INSTANCE: text.split()}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise CommandError(f"{path}: {reason_of(error)}") from error
    if not all(isinstance(uuids, list) for uuids in found.values()):
        raise CommandError(f'{path}: {{"INSTANCE": [uuid, …], …}} is expected')
    return {str(name): [str(uuid) for uuid in uuids] for name, uuids in found.items()}


def _servers(compute: adapter.Adapter) -> Iterator[str]:
    """Yield the uuids of all servers of all projects, page by page."""
    query = {"all_tenants": "True", "limit": str(PAGE)}
    while True:
        servers, marker = page(compute, "/servers", "servers", query, microversion=_MICROVERSION)
        for server in servers:
            yield str(server["id"])
        if marker is None:
            return
        query["marker"] = marker
