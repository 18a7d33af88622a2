# SPDX-License-Identifier: Apache-2.0
"""The version documents (contract page 10, section 1, and page 97, section 1), and the description."""

from treeclaim.api.protocol.operations import Call, Reply
from treeclaim.api.protocol.timestamps import now
from treeclaim.model.microversions import EXTENSION_MAXIMUM, EXTENSION_MINIMUM, MAXIMUM, MINIMUM


def show_versions(_call: Call) -> Reply:
    """Say which microversions are served."""
    return _versions(str(MINIMUM), str(MAXIMUM))


def show_extension_versions(_call: Call) -> Reply:
    """Say which versions of the extension are served."""
    return _versions(EXTENSION_MINIMUM.version, EXTENSION_MAXIMUM.version)


def _versions(lowest: str, highest: str) -> Reply:
    version = {
        "id": f"v{lowest}",
        "min_version": lowest,
        "max_version": highest,
        "status": "CURRENT",
        "links": [{"rel": "self", "href": ""}],
    }
    return Reply(body={"versions": [version]}, modified_at=now())


def show_description(call: Call) -> Reply:
    """Show the description of the API; it needs no token."""
    return Reply(body=call.services.description)
