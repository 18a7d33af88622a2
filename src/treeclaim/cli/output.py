# SPDX-License-Identifier: Apache-2.0
"""What commands have in common."""

PORT = 8778
"""The conventional port of the Placement API."""


class CommandError(Exception):
    """A command cannot go on; the message is for the person at the terminal."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code
