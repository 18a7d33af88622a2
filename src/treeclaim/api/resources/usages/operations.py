# SPDX-License-Identifier: Apache-2.0
"""The operations on usages (contract page 80)."""

from treeclaim.api.protocol.operations import Operation
from treeclaim.api.resources.usages import answers, handlers, schemas
from treeclaim.model.microversions import Feature

OPERATIONS = (
    Operation(
        "GET",
        "/resource_providers/{uuid}/usages",
        handlers.show_provider_usages,
        policy="placement:resource_providers:usages",
        summary="Show how much of each inventory of a resource provider is used.",
        answers=(answers.PROVIDER,),
        checks_accept=True,
    ),
    Operation(
        "GET",
        "/usages",
        handlers.list_usages,
        policy="placement:usages",
        summary="Sum up what the consumers of a project hold.",
        answers=(answers.PROJECT,),
        since=Feature.USAGES,
        gate_first=True,
        query=schemas.QUERY,
        checks_accept=True,
    ),
)
