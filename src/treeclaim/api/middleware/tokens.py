# SPDX-License-Identifier: Apache-2.0
"""Validation of tokens by keystonemiddleware, with its waits in the right place.

The library asks memcached and Keystone in the thread of the request. Here that is left to a few threads
(`Lookups`), and the request waits without one where its server offers a place for that (`PARKING_KEY`).
Requests whose token this process knows wait for neither.

keystonemiddleware makes its cache, and imports the libraries of it, when the first token comes: what
is missing then fails every request. So it is made once beforehand (`fault_of`).
"""

import logging
import math
import threading
import warnings
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import memcache
from keystoneauth1.exceptions import ClientException
from keystonemiddleware import auth_token
from keystonemiddleware.auth_token import _exceptions
from oslo_config import cfg

from treeclaim.api.admission import Admission, Kind
from treeclaim.api.middleware.lookups import LONGEST_WAIT, Lookups, SharedLookup
from treeclaim.forest.bounds.cache import ByteCache

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication, WSGIEnvironment

_LOG = logging.getLogger(__name__)

PARKING_KEY = "treeclaim.parking"
"""The key under which a server offers a place to wait without a thread: `go_on()` starts the request again,
from any thread; `kept` is a dictionary that outlives that; `leave()` ends this run by an exception."""

_CLIENT_GONE_KEY = "treeclaim.client_gone"

_CACHE_KEY = "treeclaim.tokens"
"""The key under which the library finds its cache, by its option `cache`."""

_MOST_BYTES = 32 * 1024 * 1024
"""Memory of known tokens: some thousand, as each has the whole catalogue."""

_HEARSAY_SECONDS = 10
"""Seconds for which a token is kept here that another process has looked up: it is unknown when that was,
and all processes have to refuse a revoked token after little more than `token_cache_time`."""

_TIMEOUT = 10.0
"""Seconds that Keystone has for a step of its answer, where `http_connect_timeout` does not say it."""

_PATIENCE = 1
"""Seconds that a memcached server has to answer a check, and beyond which the log mentions the wait."""


class TokenWaiting:
    """How a request waits for what Keystone says."""

    def __init__(self, lookups: Lookups, admission: Admission) -> None:
        self._lookups = lookups
        self._admission = admission

    def answer(self, environment: "WSGIEnvironment", key: Hashable, ask: Callable[[], Any]) -> Any:
        """Return the answer to a question, or leave until it is there.

        Raises:
            OverloadedError: if it does not come in time, or too many wait.
            Exception: whatever the question raises; and that by which a request is parked.
        """
        parking = environment.get(PARKING_KEY)
        is_gone = environment.get(_CLIENT_GONE_KEY)
        if parking is None:
            return self._answer_here(key, ask, is_gone)
        known: SharedLookup | None = parking.kept.get(key)
        if known is not None:
            return known.result()

        def go_on(lookup: SharedLookup) -> None:
            parking.kept[key] = lookup
            parking.go_on()

        self._lookups.wait_for(key, ask, go_on, is_gone)
        return parking.leave()

    def _answer_here(
        self, key: Hashable, ask: Callable[[], Any], is_gone: Callable[[], bool] | None
    ) -> Any:
        """Wait in this thread, if enough others are left."""
        over = threading.Event()
        lookups: list[SharedLookup] = []

        def go_on(lookup: SharedLookup) -> None:
            lookups.append(lookup)
            over.set()

        with self._admission.admitted(Kind.LOOKUP):
            self._lookups.wait_for(key, ask, go_on, is_gone)
            over.wait(2 * LONGEST_WAIT)
        return lookups[0].result()


class SharedTokens:
    """The tokens that services keep in memcached for each other: whatever it does, a token is looked up.

    Each call waits for it as long as its options say, and for no server that has not answered before
    `memcache_pool_dead_retry` seconds have passed.
    """

    def __init__(self, cache: Any) -> None:
        """Use a cache of the library.

        Raises:
            ImportError: if it needs a package that is not installed.
        """
        self._cache = cache
        self._cache.initialize({})

    def find(self, token: str) -> Any:
        """Return what memcached knows of a token; None if nothing, or if it cannot be asked."""
        begun = monotonic()
        try:
            return self._cache.get(token)
        except Exception as error:  # noqa: BLE001 - Keystone is asked then, whatever it is
            _LOG.warning("A token could not be looked for in memcached: %s", error)
            return None
        finally:
            # The library says nothing of a server that it gives up, and asks it no more for a while.
            if (seconds := monotonic() - begun) >= _PATIENCE:
                _LOG.warning("memcached was waited for for %.1f s", seconds)

    def keep(self, token: str, data: Any) -> None:
        """Tell others of a token, if that is possible."""
        try:
            self._cache.set(token, data)
        except Exception as error:  # noqa: BLE001 - it is known here
            _LOG.warning("A token could not be kept in memcached: %s", error)


class TokenGuard(auth_token.AuthProtocol):
    """keystonemiddleware's filter, asking Keystone by way of `TokenWaiting`."""

    def __init__(
        self, application: "WSGIApplication", options: cfg.ConfigOpts, waiting: TokenWaiting
    ) -> None:
        self._waiting = waiting
        self._here = threading.local()
        self._tokens = _KnownTokens(self._here)
        self._shared: SharedTokens | None = None
        settings = {"oslo_config_config": options, "cache": _CACHE_KEY}
        super().__init__(application, settings)  # type: ignore[no-untyped-call]
        if self._option("memcached_servers"):
            self._shared = SharedTokens(self._token_cache_factory())  # type: ignore[no-untyped-call]

    def process_request(self, request: Any) -> Any:
        """Validate the tokens of a request; see the library."""
        self._here.environment = request.environ
        # The library's own memory is one for each thread, has no bound, and is walked each time.
        request.environ[_CACHE_KEY] = self._tokens
        return super().process_request(request)  # type: ignore[no-untyped-call]

    def _option(self, name: str) -> Any:
        return self._conf.get(name)  # type: ignore[no-untyped-call]

    def _create_session(self, **more: Any) -> Any:
        more.setdefault("timeout", self._option("http_connect_timeout") or _TIMEOUT)
        return super()._create_session(**more)  # type: ignore[no-untyped-call]

    def _create_identity_server(self) -> "_SharedIdentityServer":
        inner = super()._create_identity_server()  # type: ignore[no-untyped-call]
        return _SharedIdentityServer(inner, self)

    def answer(self, key: Hashable, ask: Callable[[], Any]) -> Any:
        """Return the answer to a question of this thread's request, or leave until it is there."""
        return self._waiting.answer(self._here.environment, key, ask)

    def looked_up(self, token: str, key: Hashable, ask: Callable[[], Any]) -> Any:
        """Return what memcached or Keystone says of a token, or leave until that is there."""
        validated, self._here.longest = self.answer(key, partial(self._look_up, token, ask))
        return validated

    def _look_up(self, token: str, ask: Callable[[], Any]) -> tuple[Any, float]:
        """Return what is said of a token, and for how many seconds to believe it; in any thread."""
        answer = None if self._shared is None else self._shared.find(token)
        if answer is not None:
            return answer, _HEARSAY_SECONDS
        answer = ask()
        if self._shared is not None:
            self._shared.keep(token, answer)
        return answer, math.inf


class _SharedIdentityServer:
    """The library's object for Keystone; each of its waits is left to somebody else."""

    def __init__(self, inner: Any, guard: TokenGuard) -> None:
        self._inner = inner
        self._guard = guard

    def verify_token(self, user_token: str, *, allow_expired: bool = False) -> Any:
        """Return what Keystone knows of a token; errors are those of the library."""
        return self._guard.looked_up(
            user_token,
            (user_token, allow_expired),
            lambda: self._inner.verify_token(user_token, allow_expired=allow_expired),
        )

    @property
    def www_authenticate_uri(self) -> Any:
        """Where Keystone says that tokens are to be had."""
        return self._guard.answer("uri", lambda: self._inner.www_authenticate_uri)

    def invalidate(self) -> Any:
        """Forget where Keystone is."""
        return self._inner.invalidate()


@dataclass(frozen=True, slots=True)
class _Known:
    data: bytes
    end: float

    @property
    def nbytes(self) -> int:
        """The bytes of what is kept."""
        return len(self.data)


class _KnownTokens:
    """The tokens that this process knows, as the library wants its caches."""

    def __init__(self, here: threading.local) -> None:
        self._kept = ByteCache(_MOST_BYTES)
        self._here = here

    def get(self, key: str) -> bytes | None:
        """Return what is known under a key."""
        known = cast("_Known | None", self._kept.find(key))
        if known is None or monotonic() >= known.end:
            return None
        return known.data

    def set(self, key: str, value: bytes, time: int = 0) -> None:
        """Keep what this thread was told for some seconds, or for as long as that is to be believed."""
        self._kept.take(key)
        seconds = min(time, self._here.longest)
        self._kept.keep(key, _Known(value, monotonic() + seconds))


def fault_of(configuration: cfg.ConfigOpts) -> str | None:
    """Say what is wrong with the options; None if tokens can be validated and kept.

    No server is asked.
    """
    try:
        guarded = auth_token.AuthProtocol(  # type: ignore[no-untyped-call]
            None, {"oslo_config_config": configuration}
        )
        # There is no public way to make the cache without a token.
        guarded._token_cache.initialize({})  # noqa: SLF001
        guarded._token_cache._get_cache_key("token")  # noqa: SLF001
    except ImportError as error:
        return f"the token cache needs a package that is not installed: {error}"
    except (
        _exceptions.ConfigurationError,
        ClientException,
        cfg.Error,
        OSError,
        TypeError,
        ValueError,
    ) as error:
        return f"tokens cannot be validated with these options: {error}"
    return None


def silent_servers(configuration: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the memcached servers that do not answer, each after a second at most.

    Without them the service works, and asks Keystone about each token again.
    """
    for server in configuration.keystone_authtoken.memcached_servers or []:
        if not _answers(server):
            yield server


def _answers(server: str) -> bool:
    client: Any = memcache.Client([server], socket_timeout=_PATIENCE)  # type: ignore[no-untyped-call]
    with warnings.catch_warnings():
        # The library leaves a socket that could not be connected to Python.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            return bool(client.get_stats())
        except OSError:
            return False
        finally:
            client.disconnect_all()
