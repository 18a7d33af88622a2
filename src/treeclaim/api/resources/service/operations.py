# SPDX-License-Identifier: Apache-2.0
"""The operations that need no token."""

from treeclaim.api.protocol.operations import Operation
from treeclaim.api.resources.service import answers, handlers

OPERATIONS = (
    Operation(
        "GET",
        "/",
        handlers.show_versions,
        policy=None,
        summary="Say which versions are served.",
        answers=(answers.VERSIONS,),
    ),
    Operation(
        "GET",
        "/treeclaim",
        handlers.show_extension_versions,
        policy=None,
        summary="Say which versions of the extension are served.",
        answers=(answers.VERSIONS,),
    ),
    Operation(
        "GET",
        "/openapi.json",
        handlers.show_description,
        policy=None,
        summary="Show the description of this API.",
        answers=(answers.DESCRIPTION,),
    ),
)
