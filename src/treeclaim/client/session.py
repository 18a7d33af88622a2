# SPDX-License-Identifier: Apache-2.0
"""Sessions of keystoneauth1: requests, the errors of those that get no response, parts of URLs.

keystoneauth1 is imported by the first session: the help of a command needs none, and would take twice as long.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from treeclaim.client.errors import ClientError, LostConnectionError, UnreachableError

if TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.exceptions import ClientException
    from keystoneauth1.session import Session

_SERVICE_TYPE = "placement"

_TIMEOUT = 60.0
"""Seconds that a connection may be silent."""

_NOT_UTF_8 = "surrogateescape"
"""Python's error handler for bytes of arguments that are not UTF-8."""


def make_adapter(source: "Session", **options: Any) -> "Adapter":
    """Return the adapter of a session to the Placement API.

    Args:
        source: Finds the endpoint in the catalogue, and renews its token.
        options: For `keystoneauth1.adapter.Adapter`: region_name, interface, endpoint_override.
    """
    from keystoneauth1.adapter import Adapter  # noqa: PLC0415

    return Adapter(source, service_type=_SERVICE_TYPE, **options)


def make_session(endpoint: str, token: str) -> "Session":
    """Return a session of a URL and a token.

    Raises:
        ClientError: if either of them is invalid.
    """
    from keystoneauth1 import session, token_endpoint  # noqa: PLC0415

    if not (token.isascii() and token.isprintable()):
        raise ClientError("the token has characters that no token has")
    try:
        url = urlsplit(endpoint)
        is_valid = url.scheme in {"http", "https"} and url.hostname and url.port != 0
    except ValueError as error:
        raise ClientError(f"{endpoint!r} is not the URL of an endpoint: {error}") from error
    if not is_valid:
        text = f"{endpoint!r} is not the URL of an endpoint: http://host:port is expected"
        raise ClientError(text)
    authorities = os.environ.get("OS_CACERT") or os.environ.get("SSL_CERT_FILE") or True
    return session.Session(token_endpoint.Token(endpoint.rstrip("/"), token), verify=authorities)


def send(
    to: "Adapter", method: str, path: str, headers: Mapping[str, str], json: Any = None
) -> Any:
    """Send a request; return the response, of whatever status.

    Raises:
        ClientError: without a response; UnreachableError if the request was never received, and
            LostConnectionError if that is unknown.
    """
    from keystoneauth1.exceptions import ClientException  # noqa: PLC0415

    body = {} if json is None else {"json": json}
    try:
        return to.request(
            path,
            method,
            headers=dict(headers),
            raise_exc=False,
            redirect=False,
            timeout=_TIMEOUT,
            **body,
        )
    except ClientException as error:
        raise _convert_exception(f"{method} {path}", error) from error
    except (ValueError, OverflowError) as error:
        raise ClientError(f"{method} {path}: {error}") from error


def _convert_exception(call: str, error: "ClientException") -> ClientError:
    """Return the error of a call without a response.

    keystoneauth1 does not distinguish failures before and after the connection was made; the causes of its
    errors, which are those of urllib3, do.
    """
    from keystoneauth1 import exceptions  # noqa: PLC0415
    from urllib3 import exceptions as causes  # noqa: PLC0415

    cause: BaseException | None = error
    while cause is not None:
        reason = next(iter(cause.args), None)
        failure = getattr(reason, "reason", reason)
        if isinstance(failure, causes.NewConnectionError | causes.ConnectTimeoutError):
            return UnreachableError(f"no connection: {error}")
        if isinstance(failure, causes.ProtocolError | causes.ReadTimeoutError):
            return LostConnectionError(f"{call}: the connection was lost: {error}")
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, exceptions.HttpError):
        # Errors of the endpoint are responses; this one came from the identity service.
        return ClientError(f"{call}: Keystone refused the login: {error}")
    if isinstance(error, exceptions.ConnectFailure):
        return LostConnectionError(f"{call}: the connection was lost: {error}")
    return ClientError(f"{call}: {error}")


def escape_url(text: str, safe: str = "") -> str:
    """Return a text as a part of a URL; characters in `safe` stay as they are."""
    return quote(text, safe=safe, errors=_NOT_UTF_8)


def encode_query(parameters: Mapping[str, str] | Sequence[tuple[str, str]], safe: str = "") -> str:
    """Return the query string of parameters; characters in `safe` stay as they are."""
    return urlencode(parameters, safe=safe, errors=_NOT_UTF_8)


THREADS = 8
"""Requests at once. One process of the service handles four; the others wait there, so that none
of its threads is ever idle."""

BATCH = 1_000
"""Most entries of a page, and of one write of providers, requests, holds or repairs."""

Progress = Callable[[str, int, int], None]
"""Called with the name of a stage, how much of it is done, and how much there is."""


def ignore_progress(_stage: str, _done: int, _total: int) -> None:
    """Report no progress."""


Item = TypeVar("Item")
Result = TypeVar("Result")


def run_parallel(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    threads: int = THREADS,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Result]:
    """Do some work for each item; return the results in the order of the items.

    After an interruption or a failure no further work begins.

    Args:
        work: Called with an item, in threads.
        items: The items.
        threads: How many at once.
        progress: Called with the number of items that are done, and the number of all items.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        futures = [pool.submit(work, item) for item in items]
        for done, future in enumerate(as_completed(futures), 1):
            future.result()
            progress(done, len(futures))
        return [future.result() for future in futures]
    finally:
        pool.shutdown(cancel_futures=True)


def split_batches(items: Sequence[Item], most: int = BATCH) -> Iterator[Sequence[Item]]:
    """Yield items in pieces that fit into a call."""
    for first in range(0, len(items), most):
        yield items[first : first + most]
