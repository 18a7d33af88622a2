# SPDX-License-Identifier: Apache-2.0
"""The operations on allocation candidates (contract pages 90 and 97)."""

from treeclaim.api.protocol.operations import Operation
from treeclaim.api.resources.candidates import answers, explain, forms, handlers, schemas
from treeclaim.model.microversions import ExtensionFeature, Feature

OPERATIONS = (
    Operation(
        "GET",
        "/allocation_candidates",
        handlers.list_candidates,
        policy="placement:allocation_candidates:list",
        summary="List combinations of providers that satisfy a request.",
        answers=(answers.CANDIDATES,),
        since=Feature.ALLOCATION_CANDIDATES,
        query=schemas.QUERY,
        forms=forms.SEARCH,
        is_extended=True,
        gate_first=True,
        checks_accept=True,
    ),
    Operation(
        "GET",
        "/allocation_candidates/explain",
        explain.explain_candidates,
        policy="placement:allocation_candidates:list",
        summary="Tell why a request for candidates finds what it finds.",
        answers=(answers.EXPLANATION,),
        query=schemas.EXPLAIN_QUERY,
        forms=forms.EXPLANATION,
        gate_first=True,
        checks_accept=True,
        extension=ExtensionFeature.MORE_CONSTRAINTS,
    ),
)
