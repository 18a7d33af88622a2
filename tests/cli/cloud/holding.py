# SPDX-License-Identifier: Apache-2.0
"""A service that lists the version of the extension which brings holds, and clients that ask for it."""

from contextlib import contextmanager
from unittest.mock import patch

from treeclaim.model.microversions import ExtensionFeature


@contextmanager
def holds_are_listed():
    """Let services and clients of this process know of holds, whether or not they are offered yet."""
    with (
        patch("treeclaim.client.client.LATEST_EXTENSION", ExtensionFeature.HOLDS),
        patch(
            "treeclaim.api.resources.service.handlers.EXTENSION_MAXIMUM", ExtensionFeature.HOLDS
        ),
    ):
        yield
