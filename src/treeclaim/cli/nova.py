# SPDX-License-Identifier: Apache-2.0
"""Nova: the servers, flavors and aggregates of a cloud, by its compute API."""

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from treeclaim.cli.connection import region_adapter, region_of
from treeclaim.cli.output import CommandError, failures_at
from treeclaim.client import Flavor
from treeclaim.client.aggregates import LONGEST_NAME
from treeclaim.client.session import query_string
from treeclaim.model.flavors import parse_flavor

if TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter

NOVA = "nova"
"""Names the cloud itself, in place of a file."""

_SERVICE_TYPE = "compute"

_PAGE = 1_000
"""Most items in one request; Nova's own maximum is no less."""

_SERVERS_VERSION = "2.69"
"""Microversion in which servers include the flavor that they were made of, and lists include servers in cells that do
not answer. Without these they would look like orphans."""

_AGGREGATES_VERSION = "2.41"
"""Microversion that lists aggregates with their uuids, which are Placement's."""

_EVERYWHERE = {"all_tenants": "True"}

_FINISHED = frozenset(
    {"cancelled", "completed", "confirmed", "done", "error", "failed", "reverted"}
)
"""States of a migration that is over; until then its uuid holds what the server has at its source."""


class Nova:
    """The compute API of a cloud.

    Methods raise CommandError if it does not answer, or not as Nova does.
    """

    def __init__(self, session: Any, region: Any) -> None:
        """Take a session of keystoneauth1, and a region of openstacksdk."""
        self._adapter: Adapter = region_adapter(region, session, _SERVICE_TYPE)

    @classmethod
    def of_options(cls, options: argparse.Namespace, option: str) -> "Nova":
        """Return Nova of the cloud of clouds.yaml that a command's options name.

        Args:
            options: The options of the command.
            option: The option that needs Nova, for the message.
        """
        name = options.os_cloud or os.environ.get("OS_CLOUD")
        if not name:
            raise CommandError(f"{option} needs a cloud of clouds.yaml: --os-cloud or OS_CLOUD")
        with region_of(name) as region:
            return cls(region.get_session(), region)

    def servers(self) -> Iterator[dict[str, Any]]:
        """Yield all servers with their flavors."""
        return self._list("/servers/detail", "servers", _EVERYWHERE, _SERVERS_VERSION)

    def living_consumers(self) -> list[str]:
        """Return the uuids of all servers, those that can be restored too, and of unfinished migrations."""
        servers = list(self._list("/servers", "servers", _EVERYWHERE, _SERVERS_VERSION))
        # Servers that can still be restored keep what they hold, and are listed only on demand.
        deleted = _EVERYWHERE | {"status": "SOFT_DELETED"}
        servers += self._list("/servers", "servers", deleted, _SERVERS_VERSION)
        unknown = sum("name" not in server for server in servers)
        if unknown:
            raise CommandError(
                f"a cell of Nova does not answer: {unknown} servers are known by their uuid alone, and "
                "migrations there are not known. Try again when it does"
            )
        migrations = self._list("/os-migrations", "migrations", {}, _SERVERS_VERSION)
        return [str(server["id"]) for server in servers] + [
            str(migration["uuid"])
            for migration in migrations
            if str(migration["status"]).lower() not in _FINISHED
        ]

    def aggregate_names(self) -> dict[str, str]:
        """Return the names of host aggregates, with the zones that they make, by uuid."""
        names = {}
        body = self._document("/os-aggregates", "aggregates", _AGGREGATES_VERSION)
        fault = "the compute API does not list the uuids of its aggregates"
        for aggregate in body["aggregates"]:
            with failures_at(fault, (KeyError, TypeError, AttributeError)):
                uuid, name = str(aggregate["uuid"]), str(aggregate["name"])
                zone = aggregate.get("availability_zone")
            words = name if zone in (None, "", name) else f"{name}, zone {zone}"
            names[uuid] = words[:LONGEST_NAME]
        return names

    def flavor(self, name: str) -> Flavor:
        """Return the flavor with a name or an id, public or not; an id comes first."""
        flavors = list(self._list("/flavors/detail", "flavors", {"is_public": "None"}))
        matches = [flavor for flavor in flavors if flavor["id"] == name]
        matches += [flavor for flavor in flavors if flavor["name"] == name]
        if not matches:
            raise CommandError(f"Nova has no flavor {name!r}")
        path = f"/flavors/{matches[0]['id']}/os-extra_specs"
        specs = self._document(path, "extra_specs")["extra_specs"]
        with failures_at(f"flavor {name} cannot be read"):
            return replace(parse_flavor(matches[0], is_typed=False), extra_specs=specs)

    def _document(self, path: str, member: str, microversion: str | None = None) -> dict[str, Any]:
        """Return an answer, which has to have a member."""
        from keystoneauth1.exceptions import ClientException  # noqa: PLC0415 - slow to import

        failures = (ClientException, ValueError, KeyError, TypeError)
        with failures_at(f"the compute API does not list its {member}", failures):
            answer = self._adapter.get(path, microversion=microversion)
            body: dict[str, Any] = answer.json()
            if member not in body:
                raise ValueError(f"{answer.text[:80]!r}")
        return body

    def _list(
        self, path: str, member: str, query: Mapping[str, str], microversion: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield all items of a list, page by page."""
        parameters = {**query, "limit": str(_PAGE)}
        while True:
            body = self._document(f"{path}?{query_string(parameters)}", member, microversion)
            yield from body[member]
            links = body.get(f"{member}_links", ())
            following = [link["href"] for link in links if link["rel"] == "next"]
            if not following:
                return
            parameters["marker"] = parse_qs(urlsplit(following[0]).query)["marker"][0]
