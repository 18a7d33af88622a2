# SPDX-License-Identifier: Apache-2.0
"""The version document (contract page 10, section 1)."""

from treeclaim.api.microversions import MAXIMUM, MINIMUM
from treeclaim.api.operations import Call, Operation, Reply
from treeclaim.api.timestamps import now


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


OPERATIONS = (
    Operation("GET", "/", show_versions, policy=None, summary="Say which versions are served."),
)
