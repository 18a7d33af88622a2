# SPDX-License-Identifier: Apache-2.0
"""The version documents and the description of the API."""

from treeclaim.api.protocol.operations import Answer, Call, operation
from treeclaim.api.protocol.request.schemas import LINKS, Shape
from treeclaim.model.microversions import EXTENSION_VERSION, MAXIMUM, MINIMUM

VERSIONS: Shape = {
    "versions": [
        {
            "id": str,
            "min_version": str,
            "max_version": str,
            "status": str,
            "links": LINKS,
        }
    ]
}


@operation(
    "GET /",
    policy=None,
    shows=VERSIONS,
)
def show_versions(_call: Call) -> Answer:
    """Show the supported microversions."""
    return _versions(str(MINIMUM), str(MAXIMUM))


@operation(
    "GET /treeclaim",
    policy=None,
    shows=VERSIONS,
)
def show_extension_versions(_call: Call) -> Answer:
    """Show the supported versions of the extension."""
    return _versions(EXTENSION_VERSION, EXTENSION_VERSION)


def _versions(lowest: str, highest: str) -> Answer:
    version = {
        "id": f"v{lowest}",
        "min_version": lowest,
        "max_version": highest,
        "status": "CURRENT",
        "links": [{"rel": "self", "href": ""}],
    }
    return {"versions": [version]}


@operation(
    "GET /openapi.json",
    policy=None,
    shows=dict,
    has_cache_headers=False,
)
def show_description(call: Call) -> Answer:
    """Show the description of this API."""
    return [call.services.description()]
