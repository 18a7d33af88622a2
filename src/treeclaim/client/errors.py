# SPDX-License-Identifier: Apache-2.0
"""Errors of the client."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

_NO_CODE = "placement.undefined_code"

_USUAL_MEMBERS = frozenset({"status", "title", "detail", "request_id", "code"})
"""Members of every error (contract page 00)."""


class ClientError(Exception):
    """A call was rejected or failed; the message names the call and the reason.

    Attributes:
        status: HTTP status of the response; None without a response.
        code: The server's error code, such as `placement.concurrent_update`, or None.
        members: Further members of the error, such as `consumers` and `unplaced`.
        errors: One error for each error object of the response; the first is this error.
        retry_after: Seconds of the header Retry-After, or None.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        *,
        code: str | None = None,
        members: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.members = dict(members or {})
        self.retry_after = retry_after
        self.errors: Sequence[ClientError] = (self,)

    @property
    def conflict(self) -> Mapping[str, Any] | None:
        """Return the conflict of a rejected write: its `kind` and details (contract page 98, section 6)."""
        conflict: Mapping[str, Any] | None = self.members.get("conflict")
        return conflict


class UnreachableError(ClientError):
    """No connection could be made: nothing was sent."""


class LostConnectionError(ClientError):
    """The connection ended before the response; the outcome of the call is unknown."""


class UnsupportedFeatureError(ClientError):
    """The server lacks a required version or extension; nothing was sent."""


class ConsumerExistsError(ClientError):
    """A consumer already has allocations, the document `present`; nothing was sent."""

    def __init__(self, consumer: str, present: Mapping[str, Any]) -> None:
        owner = f"project {present.get('project_id')}, user {present.get('user_id')}"
        super().__init__(f"consumer {consumer} already has allocations ({owner})")
        self.present = present


def parse_error_response(call: str, response: Any) -> ClientError:
    """Return the error of a response with a status from 400 on; `call` is its method and path."""
    try:
        objects = orjson.loads(response.content)["errors"]
        errors = [_make_error(call, response, dict(each), str(each["detail"])) for each in objects]
        failure = errors[0]
    except (ValueError, KeyError, IndexError, TypeError):
        text = response.content.decode("utf-8", "replace")
        return _make_error(call, response, {}, text[:200])
    failure.errors = errors
    return failure


def _make_error(call: str, response: Any, error: Mapping[str, Any], detail: str) -> ClientError:
    # Placement writes the name of the status, an empty line, and then the reason.
    general, _, reason = detail.partition("\n\n")
    text = " ".join((reason or general).split())
    code = error.get("code")
    message = f"{text} ({code})" if code not in (None, _NO_CODE) else text
    seconds = str(response.headers.get("retry-after", ""))
    return ClientError(
        f"{call}: {response.status_code} {message}",
        response.status_code,
        code=code,
        members={name: value for name, value in error.items() if name not in _USUAL_MEMBERS},
        retry_after=float(seconds) if seconds.isascii() and seconds.isdigit() else None,
    )
