# SPDX-License-Identifier: Apache-2.0
"""The compute API of a cloud of clouds.yaml, for facts that only Nova has, such as its existing servers."""

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from treeclaim.cli.connection import region_adapter, region_of
from treeclaim.cli.output import CommandError, failures_at, object_of, text_in
from treeclaim.client.session import query_string
from treeclaim.model.names import UNKNOWN_TYPE, normalised_uuid

if TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter

COMPUTE = "compute"

PAGE = 1_000
"""Most items in one request; Nova's own maximum is no less."""

NOVA = "nova"
"""Name of the cloud itself, in place of a file."""

_LIVING_TYPES = ("INSTANCE", "MIGRATION", UNKNOWN_TYPE)
"""Types of Nova's consumers: it claims below the microversion of consumer types, so that
nearly all are of type `unknown`; newer releases may send types. A plain file has these types too."""

SERVERS_VERSION = "2.69"
"""Microversion of the compute API in which servers include the flavor that they were made of, and lists include
servers in cells that do not answer. Without these they would look like orphans."""

_FINISHED = frozenset(
    {"cancelled", "completed", "confirmed", "done", "error", "failed", "reverted"}
)
"""States of a migration that is over; until then its uuid holds what the server has at its source."""


def compute_of(options: argparse.Namespace, wanted_by: str) -> "Adapter":
    """Return what talks to the compute API of the cloud that a command's options name.

    Args:
        options: The options of the command.
        wanted_by: The option that needs it, for the message.
    """
    name = options.os_cloud or os.environ.get("OS_CLOUD")
    if not name:
        raise CommandError(f"{wanted_by} needs a cloud of clouds.yaml: --os-cloud or OS_CLOUD")
    with region_of(name) as region:
        return region_adapter(region, region.get_session(), COMPUTE)


def document(compute: "Adapter", path: str, member: str, **how: Any) -> dict[str, Any]:
    """Return an answer of the compute API, which has to have a member."""
    from keystoneauth1.exceptions import ClientException  # noqa: PLC0415 - slow to import

    failures = (ClientException, ValueError, KeyError, TypeError)
    with failures_at(f"the compute API does not list its {member}", failures):
        answer = compute.get(path, **how)
        body: dict[str, Any] = answer.json()
        if member not in body:
            raise ValueError(f"{answer.text[:80]!r}")
    return body


def list_pages(
    compute: "Adapter", path: str, member: str, query: Mapping[str, str], **how: Any
) -> Iterator[dict[str, Any]]:
    """Yield all items of a list, page by page."""
    parameters = {**query, "limit": str(PAGE)}
    while True:
        body = document(compute, f"{path}?{query_string(parameters)}", member, **how)
        yield from body[member]
        links = body.get(f"{member}_links", ())
        following = [link["href"] for link in links if link["rel"] == "next"]
        if not following:
            return
        parameters["marker"] = parse_qs(urlsplit(following[0]).query)["marker"][0]


def living_from(source: str, compute: Callable[[], "Adapter"]) -> dict[str, list[str]]:
    """Return the uuids of the living consumers, by type.

    Args:
        source: `nova`, or the path of a file.
        compute: Returns the client of the compute API.

    Raises:
        CommandError: if they cannot be read, or there are none: an empty list is nearly always a
            mistake, and would make every consumer an orphan.
    """
    living = _of_nova(compute()) if source == NOVA else _of_file(Path(source))
    empty = sorted(name for name, uuids in living.items() if not uuids)
    if empty or not living:
        what = f"nobody of type {', '.join(empty)}" if empty else "nobody"
        raise CommandError(
            f"{source}: {what} is listed as living. That would make all of them orphans; leave out "
            "types that are not to be judged"
        )
    return living


def _of_file(path: Path) -> dict[str, list[str]]:
    """Read a JSON object of lists by type, or lines each of which is the uuid of a consumer."""
    text = text_in(path)
    if not text.lstrip().startswith("{"):
        living = _uuids(path, text.split())
        return dict.fromkeys(_LIVING_TYPES, living)
    uuids_of = object_of(path, text)
    if not all(isinstance(uuids, list) for uuids in uuids_of.values()):
        raise CommandError(f'{path}: {{"INSTANCE": [uuid, …], …}} is expected')
    return {str(name): _uuids(path, map(str, uuids)) for name, uuids in uuids_of.items()}


def _uuids(path: Path, texts: Iterable[str]) -> list[str]:
    """Return uuids in the form of consumers; refuse other texts, which no consumer would match."""
    uuids = []
    for text in texts:
        uuid = normalised_uuid(text)
        if uuid is None:
            raise CommandError(f"{path}: {text[:40]!r} is not a uuid")
        uuids.append(uuid)
    return uuids


def _of_nova(compute: "Adapter") -> dict[str, list[str]]:
    everywhere = {"all_tenants": "True"}
    list_all = partial(list_pages, compute, microversion=SERVERS_VERSION)
    servers = list(list_all("/servers", "servers", everywhere))
    # Servers that can still be restored keep what they hold, and are listed only on demand.
    servers += list_all("/servers", "servers", everywhere | {"status": "SOFT_DELETED"})
    unknown = sum("name" not in server for server in servers)
    if unknown:
        raise CommandError(
            f"a cell of Nova does not answer: {unknown} servers are known by their uuid alone, and "
            "migrations there are not known. Try again when it does"
        )
    migrations = list_all("/os-migrations", "migrations", {})
    unfinished = [
        str(migration["uuid"])
        for migration in migrations
        if str(migration["status"]).lower() not in _FINISHED
    ]
    living = [*(str(server["id"]) for server in servers), *unfinished]
    return dict.fromkeys(_LIVING_TYPES, living)
