# SPDX-License-Identifier: Apache-2.0
"""Authentication: WSGI layers that set the identity headers (contract page 05, section 1)."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from treeclaim.api.admission import Admission
from treeclaim.api.middleware.lookups import Lookups
from treeclaim.api.protocol.callers import IDENTITY_KEY, identity_of, request_id_of
from treeclaim.api.protocol.errors import ApiError, api_error
from treeclaim.config import Configuration
from treeclaim.model.errors import OverloadedError

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_ADMIN = "admin"


_OPEN_PATHS = ("/", "/treeclaim", "/openapi.json")
"""What everybody may see: the version document and the description of the API."""


def _is_open(environment: "WSGIEnvironment", *, empty_too: bool) -> bool:
    path = environment.get("PATH_INFO", "")
    return path in _OPEN_PATHS or (empty_too and path == "")


class NoAuthentication:
    """The strategy `noauth2`: believes what the token says, for tests and standalone use."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Set the identity from the token, or answer 401."""
        if _is_open(environment, empty_too=False):
            return self._application(environment, start_response)
        token = environment.get("HTTP_X_AUTH_TOKEN")
        if token is None:
            return unauthorized(environment, start_response)
        user, _, project = token.partition(":")
        environment["HTTP_X_USER_ID"] = user
        if not environment.get("HTTP_OPENSTACK_SYSTEM_SCOPE"):
            environment.setdefault("HTTP_X_PROJECT_ID", project or user)
        if "HTTP_X_ROLES" not in environment:
            environment["HTTP_X_ROLES"] = _ADMIN if user == _ADMIN else ""
        environment[IDENTITY_KEY] = identity_of(environment)
        return self._application(environment, start_response)


class KeystoneAuthentication:
    """The strategy `keystone`: tokens are validated by keystonemiddleware."""

    def __init__(
        self, application: "WSGIApplication", configuration: Configuration, admission: Admission
    ) -> None:
        # Nine megabytes that services without Keystone do without.
        from treeclaim.api.middleware.tokens import TokenGuard, TokenWaiting  # noqa: PLC0415

        self._application = application
        waiting = TokenWaiting(
            Lookups(max(configuration.server_threads // 2, 1), configuration.connections.waiting),
            admission,
        )
        self._guarded = TokenGuard(_RequireUser(application), configuration.options, waiting)

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Let the version document through, and everything else with a valid token."""
        if _is_open(environment, empty_too=True):
            return self._application(environment, start_response)
        try:
            answer: Iterable[bytes] = self._guarded(environment, start_response)
        except OverloadedError as error:
            return _refused(api_error(error), environment, start_response)
        return answer


class _RequireUser:
    """Answers 401 to a request without an authenticated user."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        _restore_system_scope(environment)
        identity = identity_of(environment)
        if identity.user_id is None:
            return unauthorized(environment, start_response)
        environment[IDENTITY_KEY] = identity
        return self._application(environment, start_response)


def _restore_system_scope(environment: "WSGIEnvironment") -> None:
    """Restore the header to the scope of the user's token alone.

    keystonemiddleware writes it for the user's token, and over that for a service's token. A
    system-scoped user would come through as one without scope, and the other way round.
    """
    tokens = environment.get("keystone.token_auth")
    user = None if tokens is None else tokens.user
    if user is None:
        return
    is_system = bool(user.system_scoped and user.system.get("all"))
    environment["HTTP_OPENSTACK_SYSTEM_SCOPE"] = "all" if is_system else ""


def unauthorized(
    environment: "WSGIEnvironment", start_response: "StartResponse"
) -> Iterable[bytes]:
    """Answer 401."""
    detail = "The request needs a valid token in the header X-Auth-Token."
    return _refused(ApiError(HTTPStatus.UNAUTHORIZED, detail), environment, start_response)


def _refused(
    error: ApiError, environment: "WSGIEnvironment", start_response: "StartResponse"
) -> Iterable[bytes]:
    """Answer as JSON: what the client accepts, and in which version, is not looked at before."""
    told: dict[str, Any] = {
        "status": error.status.value,
        "title": error.status.phrase,
        "detail": error.detail,
        "request_id": request_id_of(environment),
    }
    body = orjson.dumps({"errors": [told]})
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response(
        f"{error.status.value} {error.status.phrase}", [*headers, *error.headers.items()]
    )
    return [body]
