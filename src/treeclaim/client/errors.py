# SPDX-License-Identifier: Apache-2.0
"""What can go wrong for a client."""


class ClientError(Exception):
    """A call was refused or failed; the message says which and why.

    Attributes:
        status: HTTP status of the answer; None if there was none.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class UnsupportedFeatureError(ClientError):
    """The server is too old for something; nothing was sent."""


class FlavorError(ValueError):
    """An extra spec cannot be read; the message names its key."""
