# SPDX-License-Identifier: Apache-2.0
"""Declarations of operations: the inputs and the responses of each method of a path.

The pipeline, the policy rules and the API description are derived from these declarations.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from http import HTTPStatus
from operator import attrgetter
from typing import Any, TypeVar

from treeclaim.api.admission import WaitKind
from treeclaim.api.protocol.errors import ApiError, Refusal, to_api_error
from treeclaim.api.protocol.negotiation import JSON
from treeclaim.api.protocol.operations.call import Answer, Call, Reply, VersionedSchema
from treeclaim.api.protocol.request.bodies import BodyReader
from treeclaim.api.protocol.request.query_models import QueryReader
from treeclaim.api.protocol.request.schemas import Schema, Shape
from treeclaim.api.protocol.request.validation import MOST_VALUES, MOST_VALUES_IN_BULK
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.microversions import Feature, Version

__all__ = [
    "EMPTY",
    "Answer",
    "Call",
    "DescribedResponse",
    "Operation",
    "Refusal",
    "Reply",
    "ValueForms",
    "VersionedSchema",
    "operation",
]

_SECTION = re.compile(r" \((?:contract |page |section)[^)]*\)")
"""A reference to the contract in the first line of a handler's docstring."""

Handler = TypeVar("Handler", bound=Callable[..., Answer])

_declared: list["Operation"] = []
"""All operations, in the order of their declaration."""


@dataclass(frozen=True, slots=True)
class DescribedResponse:
    """A successful response at the newest microversion, for the API description.

    Attributes:
        status: HTTP status.
        shows: Shape of the JSON body; None without a body.
        has_cache_headers: Whether it has Last-Modified and Cache-Control (contract page 00, section 8).
        has_location: Whether it has Location (contract page 00, section 9).
    """

    status: HTTPStatus = HTTPStatus.OK
    shows: Shape = None
    has_cache_headers: bool = True
    has_location: bool = False


_RESPONSE_ATTRIBUTES = frozenset(DescribedResponse.__dataclass_fields__)

EMPTY = DescribedResponse(HTTPStatus.NO_CONTENT, has_cache_headers=False)
"""The response of deletions, and of writes without a response body."""


@dataclass(frozen=True, slots=True)
class ValueForms:
    """Schemas for the API description of values that handlers parse after validation.

    They describe the recommended form at the newest microversion. The service also accepts blanks around the elements
    of a list, and other spellings of a number.

    Attributes:
        path: Schemas of path variables.
        query: Schemas of query parameters.
        help: One-line descriptions of query parameters.
        repeated_query: Parameters with several effective values.
        body: Returns the described schema of the body from a copy of the validating schema.
    """

    path: Mapping[str, Schema] = field(default_factory=dict)
    query: Mapping[str, Schema] = field(default_factory=dict)
    help: Mapping[str, str] = field(default_factory=dict)
    repeated_query: frozenset[str] = frozenset()
    body: Callable[[Schema], Schema] | None = None


@dataclass(frozen=True, eq=False)
class Operation:
    """A method of a path.

    Attributes:
        path: With variables in braces.
        handler: Answers a request; its name is the operation's id in the API description.
        policy: Name of the policy rule; None for an operation without authorization.
        summary: The first line of the handler's docstring.
        responses: The successful responses, one for each status.
        since: The feature that introduced the operation; None if every microversion has it.
        body: Schema, or model, of the JSON body; None if a body is ignored.
        query: Schema, or model, of the query string; None if it is ignored, or the handler parses it.
        body_until: The feature from which a body is ignored; None for no such feature.
        checks_media_type_first: Whether media types are checked before the microversion.
        missing_status: Status below `since`.
        always_checks_accept: Whether a write checks the Accept header as a read does.
        offers: Media types of the responses.
        needs_opt_in: Whether the operation belongs to the `treeclaim` extension; by default the operations below
            `/treeclaim/` do (page 97, section 1).
        is_read_only: Whether a POST changes nothing.
        most_values: Most values of a JSON body, as `count_values` counts them; checked before parsing.
        errors: Additional statuses of errors.
        refusals: Responses to errors of the model that differ from `ERROR_RULES`.
    """

    method: str
    path: str
    handler: Callable[[Call], Answer]
    policy: str | None
    summary: str
    responses: tuple[DescribedResponse, ...] = (EMPTY,)
    since: Feature | None = None
    body: VersionedSchema | BodyReader | None = None
    query: VersionedSchema | BodyReader | None = None
    body_until: Feature | None = None
    checks_media_type_first: bool = False
    missing_status: HTTPStatus = HTTPStatus.NOT_FOUND
    always_checks_accept: bool = False
    offers: tuple[str, ...] = (JSON,)
    needs_opt_in: bool = False
    forms: ValueForms = field(default_factory=ValueForms)
    is_read_only: bool = False
    most_values: int = MOST_VALUES
    errors: frozenset[HTTPStatus] = frozenset()
    refusals: tuple[Refusal, ...] = ()

    @property
    def name(self) -> str:
        """Return the operation's id in the API description."""
        return self.handler.__name__

    @cached_property
    def kind(self) -> WaitKind:
        """Return the resource that the operation waits for; operations without a policy rule use no inventory."""
        if self.method != "GET" and not self.is_read_only:
            return WaitKind.WRITE
        return WaitKind.NOTHING if self.policy is None else WaitKind.READ

    @cached_property
    def checks_accept(self) -> bool:
        """Return whether the Accept header must accept one of the offers."""
        is_read_operation = self.method == "GET" or self.is_read_only
        has_body = self.policy is not None and any(
            response.shows is not None for response in self.responses
        )
        return self.always_checks_accept or (is_read_operation and has_body)

    @cached_property
    def statuses_with_cache_headers(self) -> frozenset[HTTPStatus]:
        """Return the statuses of the responses with cache headers."""
        return frozenset(
            response.status for response in self.responses if response.has_cache_headers
        )

    def reads_body(self, version: Version) -> bool:
        """Return whether the operation reads its JSON body at a version."""
        return self.body_until is None or not version.has(self.body_until)

    def exists_at(self, version: Version) -> bool:
        """Return whether the operation exists at a version of Placement."""
        return self.since is None or version.has(self.since)

    def refuse(self, error: TreeclaimError, arguments: Mapping[str, str]) -> ApiError:
        """Return the response to an error of the model; `arguments` are the variables of the path."""
        for refusal in self.refusals:
            if isinstance(error, refusal.errors):
                text = refusal.text.format(**arguments, error=error)
                return to_api_error(error, text, status=refusal.status, code=refusal.code)
        return to_api_error(error)


def operation(route: str, **attributes: Any) -> Callable[[Handler], Handler]:
    """Declare the handler of a method of a path.

    A handler may have the parameters `query` and `body`, annotated with models. They are parsed, in this order,
    before the call. Such a body may have up to `MOST_VALUES_IN_BULK` values, as its model bounds each list.

    Args:
        route: Method and path, as in "GET /traits/{name}".
        attributes: Attributes of `Operation`, or those of `DescribedResponse` for an operation with one response.
    """
    method, path = route.split(" ")
    attributes.setdefault("needs_opt_in", path.startswith("/treeclaim/"))
    if response_attributes := {
        name: attributes.pop(name) for name in _RESPONSE_ATTRIBUTES & attributes.keys()
    }:
        attributes["responses"] = (DescribedResponse(**response_attributes),)

    def declare(handler: Handler) -> Handler:
        models = handler.__annotations__
        readers: dict[str, Callable[[Call], Any]] = {}
        if "query" in models:
            query = attributes["query"] = QueryReader(models["query"])
            readers["query"] = lambda call: query.read_pairs(call.read_query())
        if "body" in models:
            attributes["body"] = BodyReader(models["body"])
            attributes.setdefault("most_values", MOST_VALUES_IN_BULK)
            readers["body"] = Call.read_body
        summary = _SECTION.sub("", (handler.__doc__ or "").split("\n", 1)[0])
        answer = _bind_parameters(handler, readers) if readers else handler
        declared_operation = Operation(method, path, answer, summary=summary, **attributes)
        _declared.append(declared_operation)
        return handler

    return declare


def _bind_parameters(
    handler: Callable[..., Answer], readers: Mapping[str, Callable[[Call], Any]]
) -> Callable[[Call], Answer]:
    @wraps(handler)
    def answer(call: Call) -> Answer:
        return handler(call, **{name: read(call) for name, read in readers.items()})

    return answer


def list_operations() -> tuple[Operation, ...]:
    """Return the operations of all imported modules, sorted by path."""
    return tuple(sorted(_declared, key=attrgetter("path")))
