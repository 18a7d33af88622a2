# SPDX-License-Identifier: Apache-2.0
"""The root document and the description of the API."""

from treeclaim.api.protocol.operations import Call, DescribedResponse, Reply, operation
from treeclaim.api.protocol.request.schemas import LINKS, STRING, record
from treeclaim.model.microversions import EXTENSION_VERSION, MAXIMUM, MINIMUM

VERSIONS = DescribedResponse(
    body=record(
        {
            "versions": {
                "type": "array",
                "items": record(
                    {
                        "id": STRING,
                        "min_version": STRING,
                        "max_version": STRING,
                        "status": STRING,
                        "links": LINKS,
                    }
                ),
            }
        }
    )
)

DESCRIPTION = DescribedResponse(body={"type": "object"}, dated=False)


@operation(
    "GET /",
    policy=None,
    answers=(VERSIONS,),
)
def show_versions(_call: Call) -> Reply:
    """Show the supported microversions."""
    return _versions(str(MINIMUM), str(MAXIMUM))


@operation(
    "GET /treeclaim",
    policy=None,
    answers=(VERSIONS,),
)
def show_extension_versions(_call: Call) -> Reply:
    """Show the supported versions of the extension."""
    return _versions(EXTENSION_VERSION, EXTENSION_VERSION)


def _versions(lowest: str, highest: str) -> Reply:
    version = {
        "id": f"v{lowest}",
        "min_version": lowest,
        "max_version": highest,
        "status": "CURRENT",
        "links": [{"rel": "self", "href": ""}],
    }
    return Reply(body={"versions": [version]})


@operation(
    "GET /openapi.json",
    policy=None,
    answers=(DESCRIPTION,),
)
def show_description(call: Call) -> Reply:
    """Show the description of this API."""
    return Reply(body=[call.services.description()])
