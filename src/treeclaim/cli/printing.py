# SPDX-License-Identifier: Apache-2.0
"""What prints tables and trees."""

from rich.console import Console


class Printer(Console):
    """Fails as `print` does when the reader is gone; rich alone would end the process."""

    def on_broken_pipe(self) -> None:
        """Let the failure reach the command's end."""
        raise BrokenPipeError
