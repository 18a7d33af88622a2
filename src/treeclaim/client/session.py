# SPDX-License-Identifier: Apache-2.0
"""Sessions of keystoneauth1, errors without a response, parts of URLs, and concurrent calls.

Only the first session imports keystoneauth1, which would double the time of a command's help.
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

PLACEMENT = "placement"
"""Type of the Placement service in a catalogue."""

_TIMEOUT = 60.0
"""Most seconds without data on a connection."""

_NOT_UTF_8 = "surrogateescape"
"""Error handler for bytes of arguments that are not UTF-8."""


def make_adapter(source: "Session", service_type: str = PLACEMENT, **options: Any) -> "Adapter":
    """Return the adapter of a session to the Placement API or another service.

    Args:
        source: The session; it finds the endpoint in the catalogue, and renews its token.
        service_type: Type of the service in the catalogue.
        options: Of `keystoneauth1.adapter.Adapter`: region_name, interface, endpoint_override.
    """
    from keystoneauth1.adapter import Adapter  # noqa: PLC0415

    return Adapter(source, service_type=service_type, **options)


def make_session(endpoint: str, token: str) -> "Session":
    """Return a session of a URL and a token; raise ClientError if either is invalid."""
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
    """Send a request; return the response, of any status.

    Raises:
        UnreachableError: if the endpoint did not receive the request.
        LostConnectionError: if that is unknown.
        ClientError: if the request is invalid, or the login failed.
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

    keystoneauth1 does not distinguish failures before and after the connection; their causes, errors of urllib3, do.
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
        # Errors of the endpoint are responses; this error is from the identity service.
        return ClientError(f"{call}: Keystone refused the login: {error}")
    if isinstance(error, exceptions.ConnectFailure):
        return LostConnectionError(f"{call}: the connection was lost: {error}")
    return ClientError(f"{call}: {error}")


def escape_url(text: str, safe: str = "") -> str:
    """Quote a text as a part of a URL, except characters in `safe`."""
    return quote(text, safe=safe, errors=_NOT_UTF_8)


def encode_query(parameters: Mapping[str, str] | Sequence[tuple[str, str]], safe: str = "") -> str:
    """Return the query string of parameters; do not quote characters in `safe`."""
    return urlencode(parameters, safe=safe, errors=_NOT_UTF_8)


THREADS = 8
"""Concurrent requests. A process of the service handles four; the others queue there, so that no thread is idle."""

BATCH = 1_000
"""Most entries of a page, and of a write of providers, requests, holds or repairs."""

Progress = Callable[[str, int, int], None]
"""Called with the name of a stage, the number of done items, and the number of all items."""


def ignore_progress(_stage: str, _done_count: int, _total: int) -> None:
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
    """Call a function with each item in threads; return the results in the order of the items.

    After an interruption or a failure no further call begins. `progress` is called with the numbers of done and of
    all items.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        futures = [pool.submit(work, item) for item in items]
        for done_count, future in enumerate(as_completed(futures), 1):
            future.result()
            progress(done_count, len(futures))
        return [future.result() for future in futures]
    finally:
        pool.shutdown(cancel_futures=True)


def split_batches(items: Sequence[Item], most: int = BATCH) -> Iterator[Sequence[Item]]:
    """Yield slices of items that fit into a call."""
    for start in range(0, len(items), most):
        yield items[start : start + most]
