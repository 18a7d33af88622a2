# SPDX-License-Identifier: Apache-2.0
"""Whether tokens can be validated, and kept, as `[keystone_authtoken]` says.

keystonemiddleware makes its cache, and imports the libraries of it, when the first token comes: what
is missing then fails every request. So it is made once beforehand.

What is read there, and written, is asked for with the look-ups at Keystone (`SharedTokens`).
"""

import logging
import warnings
from collections.abc import Iterator
from time import monotonic
from typing import Any

import memcache
from keystoneauth1.exceptions import ClientException
from keystonemiddleware import auth_token
from keystonemiddleware.auth_token import _exceptions
from oslo_config import cfg

_LOG = logging.getLogger(__name__)

_PATIENCE = 1
"""Seconds that a memcached server has to answer a check, and beyond which the log mentions the wait."""


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
