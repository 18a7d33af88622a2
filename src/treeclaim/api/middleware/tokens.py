# SPDX-License-Identifier: Apache-2.0
"""Validation of tokens by keystonemiddleware, with a bounded cache in front of it.

Known tokens need no look-up. Unknown tokens are looked up in memcached and at Keystone in the thread of
their request, and `Admission` bounds how many threads do that.
"""

import json
import logging
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, cast

import webob.exc
from keystonemiddleware import auth_token
from oslo_config import cfg

from treeclaim import metrics
from treeclaim.api.admission import Admission, WaitKind
from treeclaim.api.protocol.operations.call import CLIENT_GONE_KEY
from treeclaim.forest.bounds.cache import ByteCache
from treeclaim.model.errors import OverloadedError

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

_LOG = logging.getLogger(__name__)

_GROUP = "keystone_authtoken"

_CACHE_KEY = "treeclaim.tokens"
"""The key of a request under which the library may find a cache."""

_MOST_BYTES = 32 * 1024 * 1024
"""Memory of known tokens: some thousand, as each has the whole catalogue."""

_MEMCACHED_SECONDS = 10
"""Seconds for which a token from memcached is kept here: its age there is unknown, and all processes must
refuse a revoked token after little more than `token_cache_time`."""

_TIMEOUT = 10.0
"""Seconds that Keystone has for a step of its answer, where `http_connect_timeout` does not say it."""


class TokenGuard(auth_token.AuthProtocol):
    """keystonemiddleware's filter behind a cache of tokens that is bounded in bytes."""

    def __init__(
        self, application: "WSGIApplication", options: cfg.ConfigOpts, admission: Admission
    ) -> None:
        self._admission = admission
        self._request = threading.local()
        self._known = ByteCache(_MOST_BYTES)
        super().__init__(application, {"oslo_config_config": options})  # type: ignore[no-untyped-call]
        self._seconds = float(self._option("token_cache_time"))
        # Without the option the library asks Keystone for it while it refuses a request.
        self._uri = self._option("www_authenticate_uri") or self._find_auth_url()

    @property
    def www_authenticate_uri(self) -> str:
        """URL at which clients get tokens, for the header of a 401."""
        return self._uri

    def _find_auth_url(self) -> str:
        try:
            return self._option("auth_url", self._option("auth_section") or _GROUP) or ""
        except cfg.NoSuchOptError:
            return ""

    def process_request(self, request: Any) -> Any:
        """Validate the tokens of a request; see the library."""
        self._request.environment = request.environ
        return super().process_request(request)  # type: ignore[no-untyped-call]

    def fetch_token(self, token: str, **options: Any) -> Any:  # type: ignore[override]
        """Return the data of a token; see the library.

        Raises:
            OverloadedError: if too many tokens are being looked up, or Keystone does not answer.
        """
        key = sha256(token.encode()).digest()
        data = self._find(key)
        if data is None:
            is_gone = self._request.environment.get(CLIENT_GONE_KEY)
            with self._admission.admitted(WaitKind.LOOKUP, is_gone):
                # Another request may have looked it up while this one waited.
                data = self._find(key) or self._look_up(key, token, options)
        return data

    def _find(self, key: bytes) -> Any:
        cached_token = cast("_KnownToken | None", self._known.find(key))
        return (
            json.loads(cached_token.data)
            if cached_token and monotonic() < cached_token.end
            else None
        )

    def _look_up(self, key: bytes, token: str, options: dict[str, Any]) -> Any:
        begin = perf_counter()
        try:
            data = super().fetch_token(token, **options)  # type: ignore[no-untyped-call]
        except webob.exc.HTTPServiceUnavailable as error:
            raise OverloadedError("identity service") from error
        finally:
            metrics.TOKEN_SECONDS.observe(perf_counter() - begin)
        is_shared = self._token_cache.has_found
        seconds = min(self._seconds, _MEMCACHED_SECONDS) if is_shared else self._seconds
        self._known.take(key)
        self._known.keep(key, _KnownToken(json.dumps(data).encode(), monotonic() + seconds))
        return data

    def _option(self, name: str, group: str = _GROUP) -> Any:
        return self._conf.get(name, group)  # type: ignore[no-untyped-call]

    def _create_session(self, **options: Any) -> Any:
        options.setdefault("timeout", self._option("http_connect_timeout") or _TIMEOUT)
        return super()._create_session(**options)  # type: ignore[no-untyped-call]

    def _token_cache_factory(self) -> "_SharedTokens":
        has_servers = bool(self._option("memcached_servers"))
        return _SharedTokens(super()._token_cache_factory() if has_servers else None)  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class _KnownToken:
    data: bytes
    end: float

    @property
    def nbytes(self) -> int:
        return len(self.data)


class _SharedTokens:
    """The library's cache of tokens in memcached; a memcached that fails is an empty one.

    Without memcached nothing is kept, as the library's own memory has no bound.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache
        self._thread = threading.local()
        if cache is not None:
            cache.initialize({})

    def initialize(self, _environment: Any) -> None:
        """Do nothing: the cache was made beforehand, as its libraries may be missing."""

    @property
    def has_found(self) -> bool:
        """True if this thread's last lookup found a token."""
        return bool(self._thread.has_found)

    def get(self, token: str) -> Any:
        data = None
        if self._cache is not None:
            try:
                data = self._cache.get(token)
            except Exception as error:  # noqa: BLE001 - Keystone has the token, whatever it is
                _LOG.warning("A token could not be read from memcached: %s", error)
        self._thread.has_found = data is not None
        return data

    def set(self, token: str, data: Any) -> None:
        if self._cache is None:
            return
        try:
            self._cache.set(token, data)
        except Exception as error:  # noqa: BLE001 - the token is kept in this process
            _LOG.warning("A token could not be kept in memcached: %s", error)


class _Dictionary:
    """A cache of the library in memory."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        return self._values.get(key)

    def set(self, key: str, value: Any, time: int = 0) -> None:
        del time
        self._values[key] = value


def fault_of(configuration: cfg.ConfigOpts) -> str | None:
    """Say what is wrong with the options; None if tokens can be validated and kept.

    The library prepares a value for its cache as the options say, and reads it again: it imports what that needs
    with the first token, which would then fail. No server is asked.
    """
    try:
        make_cache = _cache_factory(configuration)
        if configuration.keystone_authtoken.memcached_servers:
            make_cache().initialize({})
        cache = make_cache()
        cache.initialize({_CACHE_KEY: _Dictionary()})
        if not _keeps_value(cache):
            return "the token cache does not return the values that it was given"
    except ImportError as error:
        return f"the token cache needs a package that is not installed: {error}"
    except Exception as error:  # noqa: BLE001 - the libraries have no common base for what they raise
        return f"tokens cannot be validated with these options: {error}"
    return None


def faults_of_servers(configuration: cfg.ConfigOpts) -> Iterator[str]:
    """Store a value in each memcached as a token would be, and read it again; yield what is wrong.

    Without memcached the service works, and asks Keystone about each token again.
    """
    section = configuration.keystone_authtoken
    # A lifetime below zero keeps nothing.
    servers = [] if section.token_cache_time < 0 else section.memcached_servers or []
    for server in servers:
        with warnings.catch_warnings():
            # The library leaves a socket that could not be connected to Python.
            warnings.simplefilter("ignore", ResourceWarning)
            try:
                cache = _cache_factory(configuration, memcached_servers=server)()
                cache.initialize({})
                if not _keeps_value(cache):
                    yield f"{server} does not answer, or does not keep what is stored"
            except Exception as error:  # noqa: BLE001 - as above
                yield f"{server}: no value could be stored: {error}"


def _cache_factory(configuration: cfg.ConfigOpts, **settings: Any) -> Callable[[], Any]:
    settings |= {"oslo_config_config": configuration, "cache": _CACHE_KEY}
    guarded = auth_token.AuthProtocol(None, settings)  # type: ignore[no-untyped-call]
    # There is no public way to make the cache without a token.
    factory: Callable[[], Any] = guarded._token_cache_factory  # noqa: SLF001
    return factory


def _keeps_value(cache: Any) -> bool:
    token, value = f"check {uuid.uuid4()}", {"token": {"checked": True}}
    cache.set(token, value)
    return bool(cache.get(token) == value)
