# SPDX-License-Identifier: Apache-2.0
"""Reads servers, flavors and aggregates from Nova's compute API."""

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from treeclaim.cli.connection import make_region_adapter, open_region
from treeclaim.cli.output import CommandError, convert_failures
from treeclaim.client import Flavor
from treeclaim.client.aggregates import LONGEST_NAME
from treeclaim.client.session import encode_query
from treeclaim.model.flavors import parse_flavor

if TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter

NOVA = "nova"
"""The argument that selects Nova as source, in place of a file."""

_SERVICE_TYPE = "compute"

_PAGE = 1_000
"""Page size; Nova's default maximum is the same."""

_SERVERS_VERSION = "2.69"
"""Microversion in which servers embed their flavor, and lists include servers of unreachable cells, which would
otherwise look like orphans."""

_AGGREGATES_VERSION = "2.41"
"""Microversion that lists the uuids of aggregates, which Placement has too."""

_EVERYWHERE = {"all_tenants": "True"}

_FINISHED = frozenset(
    {"cancelled", "completed", "confirmed", "done", "error", "failed", "reverted"}
)
"""Final states of a migration. Until then its uuid holds the allocations at the source."""


class Nova:
    """The compute API of a region of openstacksdk. Methods raise CommandError for a missing or invalid answer."""

    def __init__(self, session: Any, region: Any) -> None:
        self._adapter: Adapter = make_region_adapter(region, session, _SERVICE_TYPE)

    @classmethod
    def from_options(cls, options: argparse.Namespace, option: str) -> "Nova":
        """Connect to the cloud of clouds.yaml in a command's options; `option`, named in errors, needs it."""
        name = options.os_cloud or os.environ.get("OS_CLOUD")
        if not name:
            raise CommandError(f"{option} needs a cloud of clouds.yaml: --os-cloud or OS_CLOUD")
        with open_region(name) as region:
            return cls(region.get_session(), region)

    def list_servers(self) -> Iterator[dict[str, Any]]:
        """Yield all servers, each with its flavor."""
        return self._list("/servers/detail", "servers", _EVERYWHERE, _SERVERS_VERSION)

    def list_live_consumers(self) -> list[str]:
        """Return the uuids of all servers, restorable ones included, and of unfinished migrations."""
        servers = list(self._list("/servers", "servers", _EVERYWHERE, _SERVERS_VERSION))
        # Restorable servers keep their allocations, but are listed only by their status.
        deleted_filters = _EVERYWHERE | {"status": "SOFT_DELETED"}
        servers += self._list("/servers", "servers", deleted_filters, _SERVERS_VERSION)
        unknown_count = sum("name" not in server for server in servers)
        if unknown_count:
            raise CommandError(
                f"a cell of Nova does not answer: the names of {unknown_count} servers are missing, and its "
                "migrations, too. Try again when it answers"
            )
        migrations = self._list("/os-migrations", "migrations", {}, _SERVERS_VERSION)
        return [str(server["id"]) for server in servers] + [
            str(migration["uuid"])
            for migration in migrations
            if str(migration["status"]).lower() not in _FINISHED
        ]

    def list_aggregate_names(self) -> dict[str, str]:
        """Return the names of host aggregates, with their availability zones, by uuid."""
        names = {}
        body = self._get_document("/os-aggregates", "aggregates", _AGGREGATES_VERSION)
        fault = "the compute API does not list the uuids of its aggregates"
        for aggregate in body["aggregates"]:
            with convert_failures(fault, (KeyError, TypeError, AttributeError)):
                uuid, name = str(aggregate["uuid"]), str(aggregate["name"])
                zone = aggregate.get("availability_zone")
            title = name if zone in (None, "", name) else f"{name}, zone {zone}"
            names[uuid] = title[:LONGEST_NAME]
        return names

    def find_flavor(self, name: str) -> Flavor:
        """Return the public or private flavor with an id, or else with a name."""
        flavors = list(self._list("/flavors/detail", "flavors", {"is_public": "None"}))
        matches = [flavor for flavor in flavors if flavor["id"] == name]
        matches += [flavor for flavor in flavors if flavor["name"] == name]
        if not matches:
            raise CommandError(f"Nova has no flavor {name!r}")
        path = f"/flavors/{matches[0]['id']}/os-extra_specs"
        specs = self._get_document(path, "extra_specs")["extra_specs"]
        with convert_failures(f"flavor {name} cannot be read"):
            return replace(parse_flavor(matches[0], is_typed=False), extra_specs=specs)

    def _get_document(
        self, path: str, member: str, microversion: str | None = None
    ) -> dict[str, Any]:
        """Return the document of a response, which must have a member."""
        from keystoneauth1.exceptions import ClientException  # noqa: PLC0415 - slow to import

        failures = (ClientException, ValueError, KeyError, TypeError)
        with convert_failures(f"the compute API does not list its {member}", failures):
            answer = self._adapter.get(path, microversion=microversion)
            body: dict[str, Any] = answer.json()
            if member not in body:
                raise ValueError(f"{answer.text[:80]!r}")
        return body

    def _list(
        self, path: str, member: str, query: Mapping[str, str], microversion: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the items of all pages of a list."""
        parameters = {**query, "limit": str(_PAGE)}
        while True:
            body = self._get_document(f"{path}?{encode_query(parameters)}", member, microversion)
            yield from body[member]
            links = body.get(f"{member}_links", ())
            next_links = [link["href"] for link in links if link["rel"] == "next"]
            if not next_links:
                return
            parameters["marker"] = parse_qs(urlsplit(next_links[0]).query)["marker"][0]
