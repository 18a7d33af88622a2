# SPDX-License-Identifier: Apache-2.0
"""Validation of tokens by keystonemiddleware, behind a bounded cache.

Tokens that are not cached are looked up in memcached and at Keystone in the thread of their request; `Admission` bounds
the number of these threads.
"""

import json
import logging
import threading
import uuid
import warnings
from collections.abc import Iterator
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

_MOST_BYTES = 32 * 1024 * 1024
"""Memory of cached tokens: several thousand, as each contains the whole service catalogue."""

_MEMCACHED_SECONDS = 10
"""Seconds for which a token from memcached is cached here. Its age is unknown, and all processes must reject a revoked
token soon after `token_cache_time`."""

_TIMEOUT = 10.0
"""Seconds of each timeout of a call to Keystone if `http_connect_timeout` is not set."""


class TokenGuard(auth_token.AuthProtocol):
    """keystonemiddleware's filter with a cache of tokens that is bounded in bytes."""

    def __init__(
        self, application: "WSGIApplication", options: cfg.ConfigOpts, admission: Admission
    ) -> None:
        self._admission = admission
        self._request = threading.local()
        self._cached = ByteCache(_MOST_BYTES)
        super().__init__(application, {"oslo_config_config": options})  # type: ignore[no-untyped-call]
        self._seconds = float(self._option("token_cache_time"))
        # Without a value, the library would read it from Keystone while it rejects a request.
        self._uri = self._option("www_authenticate_uri") or self._find_auth_url()

    @property
    def www_authenticate_uri(self) -> str:
        """URL at which clients get tokens, for a header of the 401."""
        return self._uri

    def _find_auth_url(self) -> str:
        try:
            return self._option("auth_url", self._option("auth_section") or _GROUP) or ""
        except cfg.NoSuchOptError:
            return ""

    def process_request(self, request: Any) -> Any:
        """Override: store the environment, which `fetch_token` needs."""
        self._request.environment = request.environ
        return super().process_request(request)  # type: ignore[no-untyped-call]

    def fetch_token(self, token: str, **options: Any) -> Any:  # type: ignore[override]
        """Override: return the data of a token from the cache, or else look it up.

        Raises:
            OverloadedError: if too many look-ups are running, or Keystone does not answer.
        """
        key = sha256(token.encode()).digest()
        data = self._find(key)
        if data is None:
            is_gone = self._request.environment.get(CLIENT_GONE_KEY)
            with self._admission.admit(WaitKind.LOOKUP, is_gone):
                # Another request may have cached it meanwhile.
                data = self._find(key) or self._look_up(key, token, options)
        return data

    def _find(self, key: bytes) -> Any:
        cached_token = cast("_CachedToken | None", self._cached.find(key))
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
        self._cached.take(key)
        self._cached.keep(key, _CachedToken(json.dumps(data).encode(), monotonic() + seconds))
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
class _CachedToken:
    data: bytes
    end: float

    @property
    def nbytes(self) -> int:
        return len(self.data)


class _SharedTokens:
    """The library's cache of tokens in memcached; failures count as misses.

    Without memcached it stores nothing, as the library's local cache is unbounded.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache
        self._thread = threading.local()
        if cache is not None:
            cache.initialize({})

    def initialize(self, _environment: Any) -> None:
        """Do nothing: the constructor has initialized the cache, to detect missing libraries."""

    @property
    def has_found(self) -> bool:
        """Whether this thread's last look-up found a token."""
        return bool(self._thread.has_found)

    def get(self, token: str) -> Any:
        data = None
        if self._cache is not None:
            try:
                data = self._cache.get(token)
            except Exception as error:  # noqa: BLE001 - Keystone has the token
                _LOG.warning("A token could not be read from memcached: %s", error)
        self._thread.has_found = data is not None
        return data

    def set(self, token: str, data: Any) -> None:
        if self._cache is None:
            return
        try:
            self._cache.set(token, data)
        except Exception as error:  # noqa: BLE001 - this process has the token
            _LOG.warning("A token could not be written to memcached: %s", error)


def find_option_fault(configuration: cfg.ConfigOpts) -> str | None:
    """Return the fault of the options, without contacting a server; None if they are valid.

    The library imports the packages for memcached with the first token, which would fail without them.
    """
    try:
        cache = _make_cache(configuration)
        if configuration.keystone_authtoken.memcached_servers:
            cache.initialize({})
    except ImportError as error:
        return f"the token cache needs a package that is not installed: {error}"
    except Exception as error:  # noqa: BLE001 - the libraries have no common base for what they raise
        return f"tokens cannot be validated with these options: {error}"
    return None


def find_server_faults(configuration: cfg.ConfigOpts) -> Iterator[str]:
    """Store and read a value in each memcached server; yield a text for each fault."""
    section = configuration.keystone_authtoken
    # A negative lifetime disables the cache.
    servers = [] if section.token_cache_time < 0 else section.memcached_servers or []
    for server in servers:
        token, value = f"check {uuid.uuid4()}", {"token": {"checked": True}}
        with warnings.catch_warnings():
            # The library does not close a socket that failed to connect.
            warnings.simplefilter("ignore", ResourceWarning)
            try:
                cache = _make_cache(configuration, memcached_servers=server)
                cache.initialize({})
                cache.set(token, value)
                if cache.get(token) != value:
                    yield f"{server} does not respond, or does not return the stored value"
            except Exception as error:  # noqa: BLE001 - as above
                yield f"{server}: no value could be stored: {error}"


def _make_cache(configuration: cfg.ConfigOpts, **settings: str) -> Any:
    options = {"oslo_config_config": configuration, **settings}
    guarded_application = auth_token.AuthProtocol(None, options)  # type: ignore[no-untyped-call]
    # The library has no public function that creates the cache.
    return guarded_application._token_cache  # noqa: SLF001
