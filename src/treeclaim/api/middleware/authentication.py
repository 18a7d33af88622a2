# SPDX-License-Identifier: Apache-2.0
"""WSGI layers that authenticate callers and set the identity headers (contract page 05, section 1)."""

import logging
import re
from collections.abc import Iterable, Mapping
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import webob.exc
from oslo_middleware import basic_auth

from treeclaim.api.admission import Admission, WaitKind
from treeclaim.api.protocol.callers import (
    IDENTITY_HEADER_KEYS,
    IDENTITY_KEY,
    read_identity,
    read_request_id,
)
from treeclaim.api.protocol.errors import ApiError, to_api_error
from treeclaim.api.protocol.errors.documents import render_error
from treeclaim.api.protocol.followed_files import FollowedFiles
from treeclaim.api.protocol.negotiation import JSON
from treeclaim.config import Configuration, ConfigurationError
from treeclaim.forest.bounds.cache import ByteCache
from treeclaim.model.errors import OverloadedError

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_LOG = logging.getLogger(__name__)

_ADMIN = "admin"

_OPEN_PATHS = ("/", "/treeclaim", "/openapi.json")
"""Paths that need no credentials: the version documents and the description of the API."""

_BASIC_ROLES = "admin,member,reader,service"
"""Roles of each user of the password file."""

_ENTRY = re.compile(r"([^:#][^:]*):\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}")

_CHALLENGE = {"WWW-Authenticate": 'Basic realm="placement"'}

_MOST_CREDENTIALS_BYTES = 1024 * 1024
"""Memory of verified credentials: several thousand entries."""


def _is_open(environment: "WSGIEnvironment", *, includes_empty: bool) -> bool:
    path = environment.get("PATH_INFO", "")
    return path in _OPEN_PATHS or (includes_empty and path == "")


_NOAUTH2_TOKENS = (
    ": 'admin' or 'admin:PROJECT' for an administrator; 'USER' or 'USER:PROJECT' with the roles of "
    "the header X-Roles"
)
"""The tokens of `noauth2` (contract page 05, section 1.1)."""


class NoAuthentication:
    """The strategy `noauth2`: trusts the token."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Read the identity from the token; answer 401 without a token."""
        if _is_open(environment, includes_empty=False):
            return self._application(environment, start_response)
        token = environment.get("HTTP_X_AUTH_TOKEN")
        if token is None:
            return _answer_unauthorized(environment, start_response, _NOAUTH2_TOKENS)
        user, _, project = token.partition(":")
        environment["HTTP_X_USER_ID"] = user
        if not environment.get("HTTP_OPENSTACK_SYSTEM_SCOPE"):
            environment.setdefault("HTTP_X_PROJECT_ID", project or user)
        if "HTTP_X_ROLES" not in environment:
            environment["HTTP_X_ROLES"] = _ADMIN if user == _ADMIN else ""
        environment[IDENTITY_KEY] = read_identity(environment)
        return self._application(environment, start_response)


class BasicAuthentication:
    """The strategy `http_basic`: a file with users and bcrypt hashes; every user has the roles of an administrator."""

    def __init__(self, application: "WSGIApplication", path: str, admission: Admission) -> None:
        """Read the file, with lines `USER:HASH`; it is read again when it changes.

        Raises:
            ConfigurationError: if the file is invalid.
        """
        self._application = application
        self._admission = admission
        self._entries = FollowedFiles(
            "users", lambda: [Path(path)], partial(read_password_file, path), ConfigurationError
        )
        self._verified = ByteCache(_MOST_CREDENTIALS_BYTES)

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Read the identity from the header Authorization; answer 401 for invalid credentials."""
        if _is_open(environment, includes_empty=True):
            return self._application(environment, start_response)
        try:
            user = self._find_user(environment.get("HTTP_AUTHORIZATION", ""))
        except OverloadedError as error:
            return _refuse(to_api_error(error), environment, start_response)
        if user is None:
            detail = "The request needs a user and a password of the service (HTTP Basic)."
            refusal = ApiError(HTTPStatus.UNAUTHORIZED, detail, headers=_CHALLENGE)
            return _refuse(refusal, environment, start_response)
        for key in IDENTITY_HEADER_KEYS:
            environment.pop(key, None)
        environment["HTTP_X_USER_ID"] = environment["HTTP_X_PROJECT_ID"] = user
        environment["HTTP_X_ROLES"] = _BASIC_ROLES
        environment[IDENTITY_KEY] = read_identity(environment)
        return self._application(environment, start_response)

    def _find_user(self, header: str) -> str | None:
        """Return the user of the credentials in a header; None if they are invalid.

        bcrypt takes a tenth of a second, so a right password is cached with the user's line. Wrong passwords are not
        cached, as they would evict right ones.

        Raises:
            OverloadedError: if too many requests are computing hashes.
        """
        try:
            token = basic_auth.parse_header({"HTTP_AUTHORIZATION": header})
            user, password = basic_auth.parse_token(token)
        except webob.exc.HTTPError:
            return None
        entry = self._entries.contents().get(user)
        if entry is None:
            return None
        key = (entry, sha256(password).digest())
        if self._verified.find(key) is None:
            with self._admission.admit(WaitKind.LOOKUP):
                if not _is_valid_password(entry, password):
                    return None
            self._verified.keep(key, _Verified())
        return user


class _Verified:
    nbytes = 0


def _is_valid_password(entry: str, password: bytes) -> bool:
    try:
        basic_auth.auth_entry(entry, password)
    except (webob.exc.HTTPError, ValueError):
        # bcrypt raises ValueError for passwords beyond 72 bytes.
        return False
    return True


def read_password_file(path: str) -> Mapping[str, str]:
    """Return the line `USER:HASH` of each user.

    Raises:
        ConfigurationError: if the file cannot be read, has no user, or has an invalid line.
    """
    option = "[api]/http_basic_auth_user_file"
    if not path:
        raise ConfigurationError(f"{option} is not set, and [api]/auth_strategy is http_basic")
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{option}: {path} cannot be read: {error}") from error
    entries: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        match = _ENTRY.fullmatch(line)
        if match is not None:
            entries.setdefault(match[1], line)
        elif line and not line.startswith("#"):
            raise ConfigurationError(
                f"{option}: {path}, line {number}: USER:HASH with a bcrypt hash is expected"
            )
    if not entries:
        raise ConfigurationError(f"{option}: {path} has no user")
    return entries


class KeystoneAuthentication:
    """The strategy `keystone`: keystonemiddleware validates the tokens."""

    def __init__(
        self, application: "WSGIApplication", configuration: Configuration, admission: Admission
    ) -> None:
        # The libraries of Keystone need nine megabytes.
        from treeclaim.api.middleware.tokens import TokenGuard  # noqa: PLC0415

        self._application = application
        self._guarded_application = TokenGuard(
            _RequireUser(application), configuration.options, admission
        )

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Pass open paths, and requests with a valid token, to the application."""
        if _is_open(environment, includes_empty=True):
            return self._application(environment, start_response)
        try:
            response: Iterable[bytes] = self._guarded_application(environment, start_response)
        except OverloadedError as error:
            return _refuse(to_api_error(error), environment, start_response)
        return response


class _RequireUser:
    """Answers 401 to a request without an authenticated user."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        _restore_system_scope(environment)
        identity = read_identity(environment)
        if identity.user_id is None:
            return _answer_unauthorized(environment, start_response)
        environment[IDENTITY_KEY] = identity
        return self._application(environment, start_response)


def _restore_system_scope(environment: "WSGIEnvironment") -> None:
    """Set the header to the scope of the user's token; keystonemiddleware sets it to that of a service's token."""
    tokens = environment.get("keystone.token_auth")
    user = None if tokens is None else tokens.user
    if user is None:
        return
    is_system = bool(user.system_scoped and user.system.get("all"))
    environment["HTTP_OPENSTACK_SYSTEM_SCOPE"] = "all" if is_system else ""


def _answer_unauthorized(
    environment: "WSGIEnvironment", start_response: "StartResponse", advice: str = ""
) -> Iterable[bytes]:
    detail = f"The request needs a valid token in the header X-Auth-Token{advice}."
    return _refuse(ApiError(HTTPStatus.UNAUTHORIZED, detail), environment, start_response)


def _refuse(
    error: ApiError, environment: "WSGIEnvironment", start_response: "StartResponse"
) -> Iterable[bytes]:
    # JSON, as no media type is negotiated yet.
    request_id = read_request_id(environment)
    _, body = render_error(error, accept=JSON, version=None, request_id=request_id)
    headers = [("Content-Type", JSON), ("Content-Length", str(len(body)))]
    start_response(
        f"{error.status.value} {error.status.phrase}", [*headers, *error.headers.items()]
    )
    return [body]
