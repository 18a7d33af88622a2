# SPDX-License-Identifier: Apache-2.0
"""The part of Nova's API that commands use, and a cloud that has it."""

import json
from contextlib import contextmanager

from tests.json_server import json_server

PAGE = 2


class Compute:
    """Lists servers, migrations and flavors: two on a page, links to the next, all projects.

    Servers in `unknown` have only a uuid, because their cell does not answer.

    Attributes:
        asked: Version and `all_tenants` of each request.
    """

    def __init__(self, **lists):
        self.servers = self.deleted = self.unknown = self.migrations = ()
        self.flavors = self.aggregates = ()
        self.page_size = PAGE
        self.asked = []
        vars(self).update(lists)

    def respond(self, request):  # noqa: PLR0911 - a resource each
        """Return the response to a request."""
        self.asked.append(
            (request.headers["OpenStack-API-Version"], request.query.get("all_tenants"))
        )
        flavor = request.path.removeprefix("/flavors/").removesuffix("/os-extra_specs")
        specs = {flavor["id"]: flavor["extra_specs"] for flavor in self.flavors}
        if request.path == f"/flavors/{flavor}/os-extra_specs" and flavor in specs:
            return 200, {"extra_specs": specs[flavor]}
        match request.path:
            case "/servers/detail":
                return self._page("servers", request, self.servers)
            case "/servers":
                is_deleted = request.query.get("status") == "SOFT_DELETED"
                listed = self.deleted if is_deleted else self.servers
                entries = [{"id": uuid, "name": f"server {uuid}", "links": []} for uuid in listed]
                entries += [{"id": uuid, "links": []} for uuid in self.unknown]
                return self._page("servers", request, entries)
            case "/os-migrations":
                migrations = [
                    {"id": number, "uuid": uuid, "status": status}
                    for number, (uuid, status) in enumerate(self.migrations)
                ]
                return self._page("migrations", request, migrations, key="uuid")
            case "/os-aggregates":
                # The uuids are in the list from 2.41 on only.
                version = request.headers["OpenStack-API-Version"] or "compute 2.1"
                is_late = int(version.rpartition(".")[2]) >= 41
                return 200, {"aggregates": without(self.aggregates, "" if is_late else "uuid")}
            case "/flavors/detail":
                # The extra specs are in the list from 2.61 on only.
                entries = [
                    flavor
                    for flavor in self.flavors
                    if request.query.get("is_public") == "None"
                    or flavor["os-flavor-access:is_public"]
                ]
                return self._page("flavors", request, without(entries, "extra_specs"))
        return 404, {"itemNotFound": {"code": 404}}

    def _page(self, name, request, entries, key="id"):
        ids = [entry[key] for entry in entries]
        begin = ids.index(request.query["marker"]) + 1 if "marker" in request.query else 0
        end = begin + self.page_size
        body = {name: entries[begin:end]}
        if len(entries) > end:
            address = f"http://{request.headers['Host']}{request.path}"
            link = f"{address}?limit=1000&marker={ids[end - 1]}"
            body[f"{name}_links"] = [{"rel": "next", "href": link}]
        return 200, body


def without(entries, hidden):
    """Return copies of entries that lack a member."""
    return [{name: value for name, value in entry.items() if name != hidden} for entry in entries]


@contextmanager
def compute_with(servers=(), flavors=(), **lists):
    """A compute API that lists some servers, flavors and more; yields it and its URL."""
    compute = Compute(servers=servers, flavors=flavors, **lists)
    with json_server(compute.respond) as url:
        yield compute, url


def flavor_of(name, vcpus, ram, disk, *, public=True, **members):
    """A flavor in the form of the compute API, with its extra specs."""
    specs = members.pop("extra_specs", {})
    return {
        "id": f"id-of-{name}",
        "name": name,
        "vcpus": vcpus,
        "ram": ram,
        "disk": disk,
        "swap": "",
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "OS-FLV-DISABLED:disabled": False,
        "os-flavor-access:is_public": public,
        "rxtx_factor": 1.0,
        "links": [],
        "extra_specs": specs,
        **members,
    }


def with_cloud(environment, folder, url, **variables):
    """The environment of commands that find the compute API by clouds.yaml."""
    cloud = {
        "auth_type": "admin_token",
        "auth": {"endpoint": url, "token": "admin"},
        "compute_endpoint_override": url,
        **variables,
    }
    path = folder / "clouds.yaml"
    path.write_text(json.dumps({"clouds": {"mine": cloud}}))
    return environment | {"OS_CLIENT_CONFIG_FILE": str(path), "OS_CLOUD": "mine"}
