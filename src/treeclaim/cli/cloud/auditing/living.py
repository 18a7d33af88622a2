# SPDX-License-Identifier: Apache-2.0
"""The living consumers: the servers and migrations that Nova lists, or those of a file."""

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from keystoneauth1 import adapter

from treeclaim.cli.cloud.compute import PAGE, page
from treeclaim.cli.output import CommandError, reason_of
from treeclaim.model.names import UNKNOWN_TYPE

NOVA = "nova"

_TYPES = ("INSTANCE", "MIGRATION", UNKNOWN_TYPE)
"""What consumers of Nova may be: it claims below the microversion that brought types, so that
nearly all are of type `unknown`; newer ones may say what they are. Also the types of a plain file."""

_MICROVERSION = "2.69"
"""Microversion of the compute API: from here on servers are listed too whose cell does not answer. Without them
they would look like orphans."""

_FINISHED = frozenset(
    {"cancelled", "completed", "confirmed", "done", "error", "failed", "reverted"}
)
"""States of a migration that is over; until then its uuid holds what the server has at its source."""


def living_from(source: str, compute: Callable[[], adapter.Adapter]) -> dict[str, list[str]]:
    """Return the uuids of the living consumers, by type.

    Args:
        source: `nova`, or the path of a file.
        compute: Gives what talks to the compute API.

    Raises:
        CommandError: if they cannot be found out, or there are none: an empty list is nearly always a
            mistake, and would make everybody an orphan.
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
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {reason_of(error)}") from error
    if not text.lstrip().startswith("{"):
        living = _uuids(path, text.split())
        return dict.fromkeys(_TYPES, living)
    try:
        uuids_of = json.loads(text)
    except ValueError as error:
        raise CommandError(f"{path}: {reason_of(error)}") from error
    if not all(isinstance(uuids, list) for uuids in uuids_of.values()):
        raise CommandError(f'{path}: {{"INSTANCE": [uuid, …], …}} is expected')
    return {str(name): _uuids(path, map(str, uuids)) for name, uuids in uuids_of.items()}


def _uuids(path: Path, texts: Iterable[str]) -> list[str]:
    """Return uuids as consumers have them; refuse other texts, which would spare nobody."""
    uuids = []
    for text in texts:
        try:
            uuids.append(str(uuid.UUID(text)))
        except ValueError:
            raise CommandError(f"{path}: {text[:40]!r} is not a uuid") from None
    return uuids


def _of_nova(compute: adapter.Adapter) -> dict[str, list[str]]:
    """Return servers and unfinished migrations, of all cells.

    Raises:
        CommandError: if a cell does not answer: its migrations are not listed then.
    """
    everywhere = {"all_tenants": "True"}
    servers = list(_listed(compute, "/servers", "servers", everywhere))
    # Servers that can still be restored keep what they hold, and are listed only on demand.
    servers += _listed(compute, "/servers", "servers", everywhere | {"status": "SOFT_DELETED"})
    unknown = sum("name" not in server for server in servers)
    if unknown:
        raise CommandError(
            f"a cell of Nova does not answer: {unknown} servers are known by their uuid alone, and "
            "migrations there are not known. Try again when it does"
        )
    migrations = _listed(compute, "/os-migrations", "migrations", {})
    unfinished = [
        str(migration["uuid"])
        for migration in migrations
        if str(migration["status"]).lower() not in _FINISHED
    ]
    living = [*(str(server["id"]) for server in servers), *unfinished]
    return dict.fromkeys(_TYPES, living)


def _listed(
    compute: adapter.Adapter, path: str, member: str, query: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield all items of a list, page by page."""
    asked = {**query, "limit": str(PAGE)}
    while True:
        servers, marker = page(compute, path, member, asked, microversion=_MICROVERSION)
        yield from servers
        if marker is None:
            return
        asked["marker"] = marker
