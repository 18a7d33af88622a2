# SPDX-License-Identifier: Apache-2.0
"""Schemas that depend on the microversion."""

from collections.abc import Callable

from treeclaim.api.protocol.request.validation import Checker
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.model.microversions import Version


class Versioned:
    """A schema for each microversion, made when first asked for, and kept.

    There are as many as microversions, each with the extension and without.
    """

    def __init__(self, make: Callable[[Version], Schema]) -> None:
        self._make = make
        self._made: dict[Version, Checker] = {}

    def at(self, version: Version) -> Checker:
        """Return the checker for a version."""
        if version not in self._made:
            self._made[version] = Checker(self._make(version))
        return self._made[version]
