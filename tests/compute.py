# SPDX-License-Identifier: Apache-2.0
"""A compute API that answers as Nova does, as far as commands ask it, and a cloud that has it."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

PAGE = 2


class _Compute(BaseHTTPRequestHandler):
    """Lists servers, migrations and flavors: two on a page, links to the next, all projects.

    Servers in `unknown` have only a uuid, as their cell does not answer.
    """

    servers: ClassVar = ()
    deleted: ClassVar = ()
    unknown: ClassVar = ()
    migrations: ClassVar[Any] = ()
    flavors: ClassVar[Any] = ()
    aggregates: ClassVar[Any] = ()
    asked: ClassVar = []
    refusals: ClassVar[list[None]] = []
    page_size: ClassVar = PAGE

    def do_GET(self):
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.asked.append((self.headers["OpenStack-API-Version"], query.get("all_tenants")))
        flavor = url.path.removeprefix("/flavors/").removesuffix("/os-extra_specs")
        specs = {flavor["id"]: flavor["extra_specs"] for flavor in self.flavors}
        if url.path == "/servers/detail":
            if self.refusals and query.get("marker") is not None:
                self.refusals.pop()
                self._send(503, {"computeFault": {"code": 503}})
                return
            self._send_page("servers", url.path, list(self.servers), query)
        elif url.path == "/servers":
            entries: list[dict[str, Any]]
            listed = self.deleted if query.get("status") == "SOFT_DELETED" else self.servers
            entries = [{"id": uuid, "name": f"server {uuid}", "links": []} for uuid in listed]
            entries += [{"id": uuid, "links": []} for uuid in self.unknown]
            self._send_page("servers", url.path, entries, query)
        elif url.path == "/os-migrations":
            entries = [
                {"id": number, "uuid": uuid, "status": status}
                for number, (uuid, status) in enumerate(self.migrations)
            ]
            self._send_page("migrations", url.path, entries, query, key="uuid")
        elif url.path == "/os-aggregates":
            # The uuids are in the list from 2.41 on only.
            version = self.headers["OpenStack-API-Version"] or "compute 2.1"
            is_late = int(version.rpartition(".")[2]) >= 41
            hidden = set() if is_late else {"uuid"}
            entries = [
                {name: value for name, value in aggregate.items() if name not in hidden}
                for aggregate in self.aggregates
            ]
            self._send(200, {"aggregates": entries})
        elif url.path == "/flavors/detail":
            # The extra specs are in the list from 2.61 on only.
            entries = [
                {name: value for name, value in flavor.items() if name != "extra_specs"}
                for flavor in self.flavors
                if query.get("is_public") == "None" or flavor["os-flavor-access:is_public"]
            ]
            self._send_page("flavors", url.path, entries, query)
        elif url.path == f"/flavors/{flavor}/os-extra_specs" and flavor in specs:
            self._send(200, {"extra_specs": specs[flavor]})
        else:
            self._send(404, {"itemNotFound": {"code": 404}})

    def _send_page(self, name, path, entries, query, key="id"):
        if "marker" in query:
            ids = [entry[key] for entry in entries]
            entries = entries[ids.index(query["marker"]) + 1 :]
        body = {name: entries[: self.page_size]}
        if len(entries) > self.page_size:
            marker = entries[self.page_size - 1][key]
            address = f"http://{self.headers['Host']}{path}?limit=1000&marker={marker}"
            body[f"{name}_links"] = [{"rel": "next", "href": address}]
        self._send(200, body)

    def _send(self, status, body):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments):
        """Say nothing."""


@contextmanager
def compute_with(servers=(), flavors=(), **lists):
    """A compute API that lists some servers, flavors and more; yields its class and URL."""
    lists |= {"servers": tuple(servers), "flavors": tuple(flavors), "asked": []}
    handler = type("Compute", (_Compute,), lists)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield handler, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


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
