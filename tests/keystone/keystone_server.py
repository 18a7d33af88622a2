# SPDX-License-Identifier: Apache-2.0
"""A real Keystone: SQLite, fernet keys, projects and users as a deployment has them."""

import os
import shutil
import subprocess
import uuid
from pathlib import Path

import httpx

from tests.environments import alone_in, environment_of
from tests.ports import free_port
from tests.servers import Server, answers, usual_environment

PASSWORD = "correct horse"
REGION = "RegionOne"
USERS = (
    ("placement", "service", "service"),
    ("service", "service", "service"),
    ("reader", "department", "reader"),
    ("member", "department", "member"),
    ("nobody", "department", "bystander"),
)
"""Users beside the administrator, each with the password `PASSWORD`, a project and a role in it. No rule of policies
names the role of a bystander."""

_BRIEF_SECONDS = 3
_COMMAND_SECONDS = 240

_CONFIGURATION = """\
[DEFAULT]
use_stderr = true

[database]
connection = sqlite:///{folder}/keystone.db

[fernet_tokens]
key_repository = {folder}/fernet-keys

[credential]
key_repository = {folder}/credential-keys

[fernet_receipts]
key_repository = {folder}/fernet-keys

[token]
expiration = {expiration}

[identity]
# The cheapest allowed setting, as no attacker reads these hashes.
password_hash_rounds = 4
"""


class Keystone:
    """A Keystone with a service catalogue that has a placement endpoint.

    The administrator `admin` has the role of that name in the project `admin`, on the default domain and on the whole
    system; the other users are `USERS`.

    Attributes:
        url: URL of the identity API, version 3.
        placement_url: The URL of placement in the catalogue.
        project_ids: By project name.
    """

    def __init__(self, folder: Path, placement_url):
        """Make the database; nothing runs yet."""
        self.placement_url = placement_url
        self.project_ids = {}
        self._folder = folder
        environment = environment_of("keystone", "keystone", "gunicorn")
        self._programs = environment / "bin"
        (folder / "gunicorn.conf.py").write_text('wsgi_app = "keystone.wsgi.api:application"\n')
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/v3"
        self._configure("keystone", 3600)
        self._server = self._server_on(port, "keystone")
        self._begin(environment / "beginning")
        self._manage(
            "bootstrap",
            f"--bootstrap-password={PASSWORD}",
            f"--bootstrap-region-id={REGION}",
            f"--bootstrap-public-url={self.url}",
            f"--bootstrap-internal-url={self.url}",
            f"--bootstrap-admin-url={self.url}",
        )

    def start(self):
        """Start it, and wait until it answers."""
        self._server.start()

    def stop(self):
        self._server.stop()

    def token(self, user, project, url=None):
        """Return a new project-scoped token."""
        scope = {"project": {"name": project, "domain": {"id": "default"}}}
        return self._log_in(user, scope, url).headers["x-subject-token"]

    def administrator_token(self, scope):
        """Return a new token of the administrator for a scope that is no project."""
        return self._log_in("admin", scope).headers["x-subject-token"]

    def brief_token(self, user, project):
        """Return a token that ends within seconds, from a second process on the same database."""
        port = free_port()
        self._configure("brief", _BRIEF_SECONDS)
        server = self._server_on(port, "brief")
        server.start()
        try:
            return self.token(user, project, f"http://127.0.0.1:{port}/v3")
        finally:
            server.stop()

    def login(self, user="admin", project="admin"):
        """Return a client's environment variables to log in with a password."""
        return {
            "OS_AUTH_URL": self.url,
            "OS_USERNAME": user,
            "OS_PASSWORD": PASSWORD,
            "OS_PROJECT_NAME": project,
            "OS_USER_DOMAIN_NAME": "Default",
            "OS_PROJECT_DOMAIN_NAME": "Default",
            "OS_IDENTITY_API_VERSION": "3",
            "OS_REGION_NAME": REGION,
        }

    def application_credential(self):
        """Return a client's environment variables to log in with an application credential.

        In the form of the file that Horizon offers.
        """
        with self._as_administrator() as http:
            me = http.get("/users", params={"name": "admin"}).json()["users"][0]["id"]
            values = {"name": str(uuid.uuid4()), "secret": PASSWORD}
            made = _create(http, f"/users/{me}/application_credentials", **values)
        return {
            "OS_AUTH_TYPE": "v3applicationcredential",
            "OS_AUTH_URL": self.url,
            "OS_IDENTITY_API_VERSION": "3",
            "OS_REGION_NAME": REGION,
            "OS_INTERFACE": "public",
            "OS_APPLICATION_CREDENTIAL_ID": made,
            "OS_APPLICATION_CREDENTIAL_SECRET": PASSWORD,
        }

    def service_options(self, **changes):
        """Return the lines with which a service's configuration file logs in; None takes an option away."""
        options = {
            "auth_url": self.url,
            "auth_type": "password",
            "username": "placement",
            "password": PASSWORD,
            "project_name": "service",
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        }
        present = (options | changes).items()
        return "".join(f"{name} = {value}\n" for name, value in present if value is not None)

    def revoke(self, token):
        headers = {"x-auth-token": token, "x-subject-token": token}
        httpx.delete(f"{self.url}/auth/tokens", headers=headers, timeout=60).raise_for_status()

    def populate(self):
        """Make the projects, users and roles, and the catalogue's entry for placement."""
        with self._as_administrator() as http:
            admin = http.get("/users", params={"name": "admin"}).json()["users"][0]["id"]
            _create(http, "/roles", name="bystander")
            for name in ("service", "department"):
                _create(http, "/projects", name=name, domain_id="default")
            for kind, ids in (("projects", self.project_ids), ("roles", roles := {})):
                ids |= {each["name"]: each["id"] for each in http.get(f"/{kind}").json()[kind]}
            for name, project, role in USERS:
                new = {"name": name, "domain_id": "default", "password": PASSWORD}
                where = (
                    f"/projects/{self.project_ids[project]}/users/{_create(http, '/users', **new)}"
                )
                http.put(f"{where}/roles/{roles[role]}").raise_for_status()
            where = f"/domains/default/users/{admin}/roles/{roles['admin']}"
            http.put(where).raise_for_status()
            _create(http, "/services", name="placement", type="placement")
        self.offer(self.placement_url, REGION)

    def offer(self, url, region):
        """Name one more placement endpoint in the catalogue, in a region of its own."""
        with self._as_administrator() as http:
            service = http.get("/services", params={"type": "placement"}).json()["services"][0]
            # By `region`, as a region that does not exist yet is made then.
            endpoint = {"service_id": service["id"], "region": region, "url": url}
            for interface in ("public", "internal", "admin"):
                _create(http, "/endpoints", interface=interface, **endpoint)

    def _as_administrator(self):
        headers = {"x-auth-token": self.token("admin", "admin")}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)

    def _log_in(self, user, scope, url=None):
        whose = {"name": user, "domain": {"id": "default"}, "password": PASSWORD}
        identity = {"methods": ["password"], "password": {"user": whose}}
        answer = httpx.post(
            f"{url or self.url}/auth/tokens",
            json={"auth": {"identity": identity, "scope": scope}},
            timeout=60,
        )
        answer.raise_for_status()
        return answer

    def _begin(self, made):
        """Copy the empty database and keys of the first Keystone in this environment.

        Creating them takes two thirds of the start of a Keystone.
        """
        with alone_in(made):
            if not made.exists():
                self._manage("db_sync")
                # As root it refuses to make keys without a given owner.
                root = ["--keystone-user=root", "--keystone-group=root"]
                as_root = root if os.geteuid() == 0 else []
                self._manage("fernet_setup", *as_root)
                self._manage("credential_setup", *as_root)
                unfinished = made.with_suffix(".unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                unfinished.mkdir()
                _copy(self._folder, unfinished)
                unfinished.rename(made)
                return
        _copy(made, self._folder)

    def _configure(self, name, expiration):
        text = _CONFIGURATION.format(folder=self._folder, expiration=expiration)
        (self._folder / f"{name}.conf").write_text(text)

    def _server_on(self, port, name):
        # Keystone takes the arguments of the process for its own, so the server gets none.
        arguments = f"--workers=1 --threads=2 --timeout=600 --bind=127.0.0.1:{port}"
        environment = usual_environment(
            self._folder,
            GUNICORN_CMD_ARGS=arguments,
            OS_KEYSTONE_CONFIG_DIR=str(self._folder),
            OS_KEYSTONE_CONFIG_FILES=f"{name}.conf",
        )
        command = [self._programs / "gunicorn"]
        ready = answers(f"http://127.0.0.1:{port}/v3")
        return Server(command, environment, self._folder / f"{name}.log", ready)

    def _manage(self, *arguments):
        subprocess.run(
            [
                str(self._programs / "keystone-manage"),
                f"--config-file={self._folder / 'keystone.conf'}",
                *arguments,
            ],
            env=usual_environment(self._folder),
            check=True,
            capture_output=True,
            timeout=_COMMAND_SECONDS,
        )


def _copy(source, target):
    shutil.copy2(source / "keystone.db", target)
    for keys in ("fernet-keys", "credential-keys"):
        shutil.copytree(source / keys, target / keys)


def _create(http, path, **values):
    """Create an object of the collection at a path; return its id."""
    kind = path.rsplit("/", 1)[1].removesuffix("s")
    answer = http.post(path, json={kind: values})
    answer.raise_for_status()
    return answer.json()[kind]["id"]
