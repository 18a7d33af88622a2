# SPDX-License-Identifier: Apache-2.0
"""The version documents (contract page 10, section 1, and page 97, section 1)."""

from treeclaim.api.protocol.microversions import EXTENSION_MAXIMUM, MAXIMUM, MINIMUM
from treeclaim.api.protocol.operations import Call, Operation, Reply
from treeclaim.api.protocol.timestamps import now


def show_versions(_call: Call) -> Reply:
    """Say which microversions are served."""
    version = {
        "id": f"v{MINIMUM}",
        "min_version": str(MINIMUM),
        "max_version": str(MAXIMUM),
        "status": "CURRENT",
        "links": [{"rel": "self", "href": ""}],
    }
    return Reply(body={"versions": [version]}, modified_at=now())


def show_extension_versions(_call: Call) -> Reply:
    """Say which versions of the extension are served."""
    version = {
        "id": "v1.0",
        "min_version": "1.0",
        "max_version": f"1.{EXTENSION_MAXIMUM}",
        "status": "CURRENT",
        "links": [{"rel": "self", "href": ""}],
    }
    return Reply(body={"versions": [version]}, modified_at=now())


OPERATIONS = (
    Operation("GET", "/", show_versions, policy=None, summary="Say which versions are served."),
    Operation(
        "GET",
        "/treeclaim",
        show_extension_versions,
        policy=None,
        summary="Say which versions of the extension are served.",
    ),
)
