# SPDX-License-Identifier: Apache-2.0
"""Errors of the client."""

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """A call was refused or failed; the message says which and why.

    Attributes:
        status: HTTP status of the answer; None if there was none.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class UnreachableError(ClientError):
    """No connection could be made: nothing was sent."""


class UnsupportedFeatureError(ClientError):
    """The server is too old for something; nothing was sent."""


class ConsumerExistsError(ClientError):
    """A consumer holds something already; nothing was sent.

    Attributes:
        present: What it holds and whose it is, as the service tells it.
    """

    def __init__(self, consumer: str, present: Mapping[str, Any]) -> None:
        owner = f"project {present.get('project_id')}, user {present.get('user_id')}"
        super().__init__(f"consumer {consumer} holds something already ({owner})")
        self.present = present


class FlavorError(ValueError):
    """An extra spec cannot be read; the message names its key."""
