# SPDX-License-Identifier: Apache-2.0
"""How a client's calls travel: by a keystoneauth1 session; several at once, too."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import orjson
from keystoneauth1 import adapter, exceptions, session, token_endpoint
from urllib3.exceptions import (
    ConnectTimeoutError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
)

from treeclaim.client.errors import ClientError, LostConnectionError, UnreachableError

SERVICE_TYPE = "placement"

_TIMEOUT = 60.0
"""Seconds that a connection may be silent, by whichever transport."""

_NO_CODE = "placement.undefined_code"

_USUAL_MEMBERS = frozenset({"status", "title", "detail", "request_id", "code"})
"""Members of every error (contract page 00)."""

_NOT_UTF_8 = "surrogateescape"
"""How Python keeps bytes of arguments that are not UTF-8."""


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response.

    Attributes:
        status: HTTP status.
        headers: By lower-case name.
        text: The body.
    """

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def retry_after(self) -> float | None:
        """The seconds after which the server asks to be called again; None if it does not."""
        value = str(self.headers.get("retry-after", ""))
        return float(value) if value.isascii() and value.isdigit() else None

    def json(self) -> Any:
        """Return the body as JSON.

        Raises:
            ClientError: if it is none.
        """
        try:
            return orjson.loads(self.text)
        except orjson.JSONDecodeError as error:
            raise ClientError(
                f"the endpoint answered {self.status} with something that is not JSON: "
                f"{self.text[:80]!r}"
            ) from error


def failure_of(call: str, answer: Response) -> ClientError:
    """Return the error of an answer, with everything that it says.

    Args:
        call: Method and path, for the message.
        answer: With a status from 400 on.
    """
    try:
        objects = orjson.loads(answer.text)["errors"]
        errors = [_error_of(call, answer, dict(each), str(each["detail"])) for each in objects]
        failure = errors[0]
    except (ValueError, KeyError, IndexError, TypeError):
        failure = _error_of(call, answer, {}, answer.text[:200])
    else:
        failure.errors = errors
    return failure


def _error_of(call: str, answer: Response, error: Mapping[str, Any], detail: str) -> ClientError:
    # Placement writes the status in words, an empty line, and then the reason.
    general, _, reason = detail.partition("\n\n")
    text = " ".join((reason or general).split())
    code = error.get("code")
    shown = f"{text} ({code})" if code not in (None, _NO_CODE) else text
    return ClientError(
        f"{call}: {answer.status} {shown}",
        answer.status,
        code=code,
        members={name: value for name, value in error.items() if name not in _USUAL_MEMBERS},
        retry_after=answer.retry_after,
    )


class Transport(Protocol):
    """Sends requests to one endpoint."""

    def send(self, method: str, path: str, headers: Mapping[str, str], json: Any) -> Response:
        """Send a request; `json` None for no body.

        Raises:
            ClientError: if there is no answer.
        """
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class SessionTransport:
    """A keystoneauth1 session, which finds the endpoint in the catalogue and renews its token."""

    def __init__(self, source: session.Session, **options: Any) -> None:
        """Use a session.

        Args:
            source: The session.
            options: For `keystoneauth1.adapter.Adapter`: region_name, interface, endpoint_override.
        """
        self._adapter = adapter.Adapter(source, service_type=SERVICE_TYPE, **options)

    def send(self, method: str, path: str, headers: Mapping[str, str], json: Any) -> Response:
        """Send a request.

        Raises:
            ClientError: if there is no answer; UnreachableError if the request was never received, and
                LostConnectionError if that is unknown.
        """
        body = {} if json is None else {"json": json}
        try:
            answer = self._adapter.request(
                path,
                method,
                headers=dict(headers),
                raise_exc=False,
                redirect=False,
                timeout=_TIMEOUT,
                **body,
            )
            # Without a declared encoding, its property `text` guesses one, which takes seconds for large bodies.
            text = answer.content.decode("utf-8", "replace")
        except exceptions.ClientException as error:
            raise _failure_of(f"{method} {path}", error) from error
        except (ValueError, OverflowError) as error:
            raise ClientError(f"{method} {path}: {error}") from error
        return Response(answer.status_code, answer.headers, text)

    def close(self) -> None:
        """Leave the session to its owner."""


class PlainTransport(SessionTransport):
    """A session of a URL and a token."""

    def __init__(self, endpoint: str, token: str) -> None:
        """Connect by URL and token.

        Raises:
            ClientError: if either of them is invalid.
        """
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
        auth = token_endpoint.Token(endpoint.rstrip("/"), token)
        super().__init__(session.Session(auth, verify=authorities))


def _failure_of(call: str, error: exceptions.ClientException) -> ClientError:
    """Return the error of a call without an answer.

    keystoneauth1 does not distinguish failures before and after the connection was made; the causes of its
    errors, which are those of urllib3, do.
    """
    cause: BaseException | None = error
    while cause is not None:
        reason = next(iter(cause.args), None)
        failure = getattr(reason, "reason", reason)
        if isinstance(failure, NewConnectionError | ConnectTimeoutError):
            return UnreachableError(f"no connection: {error}")
        if isinstance(failure, ProtocolError | ReadTimeoutError):
            return LostConnectionError(f"{call}: the connection was lost: {error}")
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, exceptions.HttpError):
        # Errors of the endpoint are responses; this one came from the identity service.
        return ClientError(f"{call}: Keystone refused the login: {error}")
    if isinstance(error, exceptions.ConnectFailure):
        return LostConnectionError(f"{call}: the connection was lost: {error}")
    return ClientError(f"{call}: {error}")


def escaped(text: str, safe: str = "") -> str:
    """Return a text as a part of a URL; characters in `safe` stay as they are."""
    return quote(text, safe=safe, errors=_NOT_UTF_8)


def query_string(parameters: Mapping[str, str] | Sequence[tuple[str, str]], safe: str = "") -> str:
    """Return the query string of parameters; characters in `safe` stay as they are."""
    return urlencode(parameters, safe=safe, errors=_NOT_UTF_8)


THREADS = 8
"""Requests at once. One process of the service handles four; the others wait there, so that none
of its threads is ever idle."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    threads: int = THREADS,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Result]:
    """Do some work for each item; return the results in the order of the items.

    If it is interrupted, or some work fails, no more work is begun.

    Args:
        work: Called in threads.
        items: What to call it with.
        threads: How many at once.
        progress: Told how many are done, and how many there are.
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
