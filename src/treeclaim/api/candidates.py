# SPDX-License-Identifier: Apache-2.0
"""GET /allocation_candidates (contract page 90)."""

from http import HTTPStatus

from treeclaim.api import schemas
from treeclaim.api.candidate_parameters import candidate_request
from treeclaim.api.errors import api_error
from treeclaim.api.microversions import Feature
from treeclaim.api.operations import Call, Operation, Reply, Versioned
from treeclaim.api.timestamps import now
from treeclaim.model.errors import ResourceClassNotFoundError, TraitsNotFoundError
from treeclaim.model.request import BodyForm

_QUERY = Versioned(schemas.candidate_query)


def list_candidates(call: Call) -> Reply:
    """Answer which combinations of providers satisfy a request."""
    request = candidate_request(call.query(), call.version, _QUERY.at(call.version))
    form = BodyForm(
        list_allocations=not call.has(Feature.ALLOCATIONS_BY_PROVIDER),
        mappings=call.has(Feature.MAPPINGS),
        traits=call.has(Feature.CANDIDATE_TRAITS),
        all_classes=call.has(Feature.ALL_CLASSES_IN_SUMMARIES),
        nested=call.has(Feature.NESTED_CANDIDATES),
    )
    services = call.services
    try:
        body = services.replica.answer(request, services.search, form)
    except ResourceClassNotFoundError as error:
        raise api_error(
            error,
            prefix="Invalid resource class in resources parameter: ",
            status=HTTPStatus.BAD_REQUEST,
        ) from error
    except TraitsNotFoundError as error:
        raise api_error(error) from error
    return Reply(body=body, modified_at=now(), is_ready_made=True)


OPERATIONS = (
    Operation(
        "GET",
        "/allocation_candidates",
        list_candidates,
        policy="placement:allocation_candidates:list",
        summary="List combinations of providers that satisfy a request.",
        since=10,
        query=_QUERY,
        gate_first=True,
        checks_accept=True,
    ),
)
