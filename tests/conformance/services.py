# SPDX-License-Identifier: Apache-2.0
"""The services that the conformance suites talk to: how they are started and emptied.

Each suite (YAML file) gets an empty database, with the options and the policy that it has. The service is a WSGI
application in this process.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import bcrypt
import sqlalchemy as sa
from gabbi.fixture import GabbiFixture

from treeclaim.api.admission import WaitKind
from treeclaim.api.routes import OPERATIONS, find_route

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Response = tuple[str, list[tuple[str, str]], bytes]

ANEW = "/begin-anew"
"""The path of a request that empties the service; no application sees it."""

BY_HAND = "/by-hand"
"""The path of requests with SQL statements, for changes of rows that no request of the API makes."""

EVERY_OPERATION = "every operation"
"""Stands in a policy for the rules of all operations."""


class Current:
    """The service of the suite that runs now; gabbi wants its application at collection."""

    application: ClassVar[Application | None] = None
    database: ClassVar[str] = "sqlite"
    fixture: ClassVar[FreshService | None] = None


def dispatch(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Hand a request to the application of the running suite.

    The client library fills PATH_INFO with real characters; WSGI wants the
    bytes of UTF-8 as latin-1 (PEP 3333).
    """
    assert Current.application is not None
    assert Current.fixture is not None
    if environ["PATH_INFO"] == ANEW:
        Current.fixture.stop_fixture()
        Current.fixture.start_fixture()
        start_response("204 No Content", [])
        return []
    if environ["PATH_INFO"] == BY_HAND:
        length = int(environ["CONTENT_LENGTH"])
        Current.fixture.change_by_hand(json.loads(environ["wsgi.input"].read(length)))
        start_response("204 No Content", [])
        return []
    environ["PATH_INFO"] = environ["PATH_INFO"].encode().decode("latin-1")
    require_unchanged_by_extension(environ, Current.application)
    status, headers, body = respond_without_forest(environ, Current.application)
    start_response(status, headers)
    return [body]


_FOREST = threading.local()
"""Whether the thread of a request has used the Forest, as its member `used`."""


def noting_use(catch_up: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that brings the Forest up to date, and notes that for its thread."""

    def noted(*arguments: Any) -> Any:
        _FOREST.used = True
        return catch_up(*arguments)

    return noted


def respond_without_forest(environ: dict[str, Any], application: Application) -> Response:
    """Respond to a request; a write that succeeds without the extension must not use the Forest.

    The Forest may be far behind, or busy: such a write would wait for all that others have committed.
    """
    route = find_route(environ["PATH_INFO"])
    operation = route and route.operations.get(environ["REQUEST_METHOD"])
    _FOREST.used = False
    response = respond(environ, application)
    is_write = operation is not None and operation.kind is WaitKind.WRITE
    is_extended = "treeclaim" in environ.get("HTTP_OPENSTACK_API_VERSION", "")
    if is_write and not is_extended and response[0].startswith("2"):
        assert not _FOREST.used, f"{operation.name} has used the Forest"
    return response


def require_unchanged_by_extension(environ: Mapping[str, Any], application: Application) -> None:
    """Send a read at 1.39 with the extension too: nothing may change (contract page 97).

    Answers that are random by configuration, and refusals, which the extension may lift, are left
    out, and so are inventories and allocations, which have more members.
    """
    is_read = environ["REQUEST_METHOD"] == "GET"
    has_more = {"allocations", "inventories"} & set(environ["PATH_INFO"].split("/"))
    if not is_read or has_more or environ.get("HTTP_OPENSTACK_API_VERSION") not in _LATEST:
        return
    plain = lasting(environ, application)
    if plain[0].startswith("200") and plain == lasting(environ, application):
        extended = {**environ, "HTTP_OPENSTACK_API_VERSION": "placement 1.39, treeclaim 1.0"}
        assert plain == lasting(extended, application)


_LATEST = ("placement 1.39", "placement latest")
_CHANGING_HEADERS = ("openstack-api-version", "x-openstack-request-id", "last-modified")


def lasting(environ: Mapping[str, Any], application: Application) -> Response:
    """The response to a request, without headers that change each time."""
    status, headers, body = respond(environ, application)
    kept = sorted(pair for pair in headers if pair[0].lower() not in _CHANGING_HEADERS)
    return status, kept, body


def respond(environ: Mapping[str, Any], application: Application) -> Response:
    """Status, headers and body of the response to a request."""
    begun: list[tuple[str, list[tuple[str, str]]]] = []

    def start(status: str, headers: list[tuple[str, str]], _error: Any = None) -> None:
        begun.append((status, headers))

    body = b"".join(application(dict(environ), start))
    return *begun[-1], body


def intercept() -> Application:
    """The application factory that gabbi calls once for each request."""
    return dispatch


class FreshService(GabbiFixture):
    """A service with noauth2 and an empty database.

    Attributes:
        options: Values by "group.option" that a suite sets.
        policy: Checks by rule that the policy file of a suite has.
        users: Passwords by name of the user file of a suite.
        prefix: Path below which a client finds the service, as behind a web server.
    """

    options: ClassVar[Mapping[str, str]] = {}
    policy: ClassVar[Mapping[str, str]] = {}
    users: ClassVar[Mapping[str, str]] = {}
    prefix: ClassVar[str] = ""

    def start_fixture(self) -> None:
        """Start the service."""
        Current.fixture = self
        self.resources = ExitStack()
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        options = {
            "api.auth_strategy": "noauth2",
            **self.options,
            **self._policy_options(),
            **self._user_options(),
        }
        Current.application = self._application(options)

    def stop_fixture(self) -> None:
        """Stop the service and take its folder away."""
        Current.application = None
        self.resources.close()
        self.folder.cleanup()

    def change_by_hand(self, statements: list[str]) -> None:
        """Run statements in the database of the service."""
        engine = sa.create_engine(self.database_url)
        with engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)
        engine.dispose()

    def _policy_options(self) -> Mapping[str, str]:
        """Write the policy file of the suite, if it has a policy; return the option that names it."""
        if not self.policy:
            return {}
        rules = dict(self.policy)
        if (check := rules.pop(EVERY_OPERATION, None)) is not None:
            rules |= {operation.policy: check for operation in OPERATIONS if operation.policy}
        path = Path(self.folder.name) / "policy.yaml"
        path.write_text(json.dumps(rules))
        return {"oslo_policy.policy_file": str(path)}

    def _user_options(self) -> Mapping[str, str]:
        """Write the user file of the suite, if it has users; return the option that names it."""
        if not self.users:
            return {}
        hashes = {
            user: bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
            for user, password in self.users.items()
        }
        path = Path(self.folder.name) / "users"
        path.write_text("# users of the service\n\n" + "\n".join(map(":".join, hashes.items())))
        return {"api.http_basic_auth_user_file": str(path)}

    def _application(self, options: Mapping[str, str]) -> Application:
        from tests.service import fresh_database_on, start_on

        folder = Path(self.folder.name)
        database = fresh_database_on(Current.database, folder)
        self.database_url = self.resources.enter_context(database)
        service = start_on(self.database_url, folder, **options)
        return self._mounted(self.resources.enter_context(service))

    def _mounted(self, application: Application) -> Application:
        def mounted(
            environ: dict[str, Any], start_response: Callable[..., Any]
        ) -> Iterable[bytes]:
            environ["SCRIPT_NAME"] = self.prefix
            environ["PATH_INFO"] = environ["PATH_INFO"].removeprefix(self.prefix)
            return application(environ, start_response)

        return mounted if self.prefix else application
