# SPDX-License-Identifier: Apache-2.0
"""The operations that find and place (contract page 98, sections 3 to 5)."""

from treeclaim.api.protocol.operations import Operation, Versioned
from treeclaim.api.protocol.request.validation import (
    MOST_VALUES_IN_BULK,
    MOST_VALUES_OF_SOME,
)
from treeclaim.api.resources.placing import answers, handlers, schemas
from treeclaim.api.resources.planning import given as forms
from treeclaim.model.microversions import ExtensionFeature

OPERATIONS = (
    Operation(
        "POST",
        "/treeclaim/candidates",
        handlers.find_alternatives,
        policy="placement:allocation_candidates:list",
        summary="List the candidates of the first of some queries that has any.",
        answers=(answers.ALTERNATIVES,),
        body=Versioned(schemas.alternatives),
        most_values=MOST_VALUES_IN_BULK,
        forms=forms.QUERIES,
        gate_first=True,
        checks_accept=True,
        extension=ExtensionFeature.ORDER_AND_REPORTS,
        only_reads=True,
    ),
    Operation(
        "POST",
        "/treeclaim/placements",
        handlers.place_consumers,
        policy="treeclaim:placements:create",
        summary="Find places for consumers, and claim them in one transaction.",
        answers=(answers.PLACED, answers.NOTHING_WRITTEN),
        body=Versioned(schemas.placements),
        most_values=MOST_VALUES_OF_SOME,
        forms=forms.QUERIES,
        gate_first=True,
        checks_accept=True,
        extension=ExtensionFeature.ORDER_AND_REPORTS,
    ),
    Operation(
        "POST",
        "/treeclaim/capacity",
        handlers.count_fitting,
        policy="placement:allocation_candidates:list",
        summary="Count how many consumers of some requests fit.",
        answers=(answers.CAPACITY,),
        body=Versioned(schemas.capacity),
        most_values=MOST_VALUES_IN_BULK,
        forms=forms.QUERIES,
        gate_first=True,
        checks_accept=True,
        extension=ExtensionFeature.ORDER_AND_REPORTS,
        only_reads=True,
    ),
)
