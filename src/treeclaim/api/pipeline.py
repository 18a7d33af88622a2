# SPDX-License-Identifier: Apache-2.0
"""Passes a request through the stages of contract page 00, section 2."""

import logging
from http import HTTPStatus
from typing import Any, cast

import falcon

from treeclaim import metrics
from treeclaim.api import routes
from treeclaim.api.protocol.callers import (
    GLOBAL_REQUEST_ID,
    IDENTITY_KEY,
    make_log_fields,
    read_identity,
    read_request_id,
)
from treeclaim.api.protocol.errors import ApiError, bad_request, not_found, to_api_error
from treeclaim.api.protocol.errors.documents import add_details, make_batch_error, render_error
from treeclaim.api.protocol.negotiation import JSON, select_media_type
from treeclaim.api.protocol.operations import Call, Operation, Reply
from treeclaim.api.protocol.operations.call import CLIENT_GONE_KEY, PIECES_KEY, Services
from treeclaim.api.protocol.request.validation import parse_query_string
from treeclaim.api.protocol.texts import encode_address, format_http_date, now, to_json
from treeclaim.api.protocol.versions import VERSION_HEADER, negotiate_version
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.extension.batch import BatchRefusedError
from treeclaim.model.microversions import NEWEST, Feature, Version
from treeclaim.model.names import quote_value
from treeclaim.model.query.value_parsers import InvalidQueryError
from treeclaim.model.timing import Deadline

_LOG = logging.getLogger(__name__)

_MOST_DIGITS = 18
"""Most digits of a Content-Length: an exabyte, which fits into 64 bits."""

VERSION_KEY = "treeclaim.version"
"""The key of the negotiated version in the WSGI environment, for the log."""


OPERATION_KEY = "treeclaim.operation"
"""The key of the operation in the WSGI environment, for metrics and traces."""


class Pipeline:
    """Answers all authenticated requests."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def __call__(self, req: falcon.Request, resp: falcon.Response, **_arguments: Any) -> None:
        """Answer a request or its error; Falcon calls this for every path."""
        request, response = req, resp
        version = operation = call = None
        try:
            version = negotiate_version(request.get_header(VERSION_HEADER))
            request.env[VERSION_KEY] = version
            response.set_header(VERSION_HEADER, version.header)
            response.append_header("Vary", VERSION_HEADER.lower())
            operation, call = self._prepare_call(request, version)
            with self._services.admission.admit(operation.kind, call.client_gone):
                reply = Reply.of(operation.handler(call))
            _write_reply(reply, operation, call, response)
        except ApiError as error:
            # A variable for the result would keep the error and its frames until the next garbage collection.
            _write_error(
                add_details(error, error.__cause__, version, self._services.replica),
                version,
                request,
                response,
            )
        except TreeclaimError as error:
            if operation is None or call is None:
                refusal = to_api_error(error)
            elif isinstance(error, BatchRefusedError):
                refusal = make_batch_error(error.problems, call.version, self._services.replica)
            else:
                refusal = operation.refuse(error, call.arguments)
            if refusal.status == HTTPStatus.INTERNAL_SERVER_ERROR:
                refusal = _log_failure(request)
            refusal = add_details(refusal, error, version, self._services.replica)
            _write_error(refusal, version, request, response)
        except Exception:  # noqa: BLE001 - the client gets an answer after any error
            _write_error(_log_failure(request), version, request, response)

    def _prepare_call(self, request: falcon.Request, version: Version) -> tuple[Operation, Call]:
        """Pass a request through the stages before its handler."""
        _require_sane_content(request)
        route = routes.find_route(request.path)
        if route is None or (route.needs_opt_in and not version.is_extended):
            raise _make_unknown_path_error(request.path, version)
        operation = route.operations.get(request.method)
        if operation is None:
            detail = f"The method {quote_value(request.method)} is not allowed for this resource."
            headers = {"Allow": ", ".join(sorted(route.operations))}
            raise ApiError(HTTPStatus.METHOD_NOT_ALLOWED, detail, headers=headers)
        request.env[OPERATION_KEY] = operation
        _require_version_and_media_type(request, operation, version)
        call = Call(
            request,
            version,
            request.env.get(IDENTITY_KEY) or read_identity(request.env),
            self._services,
            route.arguments,
            operation.body,
            operation.most_values,
            Deadline(self._services.store.timeouts.write),
            request.env.get(CLIENT_GONE_KEY),
        )
        if operation.policy == "placement:usages":
            call.require_allowed(operation.policy, {"project_id": _read_project(request)})
        elif operation.policy is not None:
            call.require_allowed(operation.policy)
        return operation, call


def _log_failure(request: falcon.Request) -> ApiError:
    """Log the current exception; return a 500 without its text, which may contain a traceback, a path or a statement."""
    request_id = read_request_id(request.env)
    ids = {"request_id": request_id, "global_request_id": request.env.get(GLOBAL_REQUEST_ID)}
    _LOG.exception(
        "Unexpected failure", extra={"context": {**make_log_fields(request.env), **ids}}
    )
    return ApiError(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        f"Unexpected API Error. The log of the service describes it, with the id {request_id}.",
    )


def _read_project(request: falcon.Request) -> str | None:
    """Return the project in the query, which the policy checks before the handler parses the query."""
    try:
        return dict(parse_query_string(request.query_string)).get("project_id")
    except InvalidQueryError:
        # The handler rejects the query, after the policy has allowed the call.
        return None


def _make_unknown_path_error(path: str, version: Version) -> ApiError:
    """Return a 404, which below `/treeclaim/` names the header that opts in."""
    if version.is_extended or not path.startswith("/treeclaim/"):
        return not_found()
    return not_found(f"Paths below /treeclaim/ need the header {VERSION_HEADER}: {NEWEST.header}")


def _require_sane_content(request: falcon.Request) -> None:
    """Stage 5: check Content-Length and Content-Type for any path."""
    length = request.env.get("CONTENT_LENGTH")
    if not length:
        return
    if not (length.isascii() and length.isdigit()):
        raise bad_request("content-length header must be an integer")
    digits = length.lstrip("0")
    if len(digits) > _MOST_DIGITS:
        raise ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The Content-Length is too large.")
    # WSGI servers accept thousands of leading zeros, which int() rejects.
    request.env["CONTENT_LENGTH"] = digits or "0"
    if digits and not request.env.get("CONTENT_TYPE"):
        raise bad_request("content-type header required when content-length > 0")


def _require_version_and_media_type(
    request: falcon.Request, operation: Operation, version: Version
) -> None:
    """Stage 7; the order of the two checks depends on the operation."""
    if operation.checks_media_type_first:
        _require_media_type(request, operation, version)
        _require_version(operation, version)
    else:
        _require_version(operation, version)
        _require_media_type(request, operation, version)


def _require_version(operation: Operation, version: Version) -> None:
    if operation.exists_at(version):
        return
    if operation.missing_status == HTTPStatus.METHOD_NOT_ALLOWED:
        raise ApiError(
            operation.missing_status,
            f"The method {operation.method} is not allowed for this resource.",
        )
    raise not_found()


def _require_media_type(request: falcon.Request, operation: Operation, version: Version) -> None:
    offers = operation.offers
    if operation.checks_accept and select_media_type(request.get_header("Accept"), offers) is None:
        raise ApiError(HTTPStatus.NOT_ACCEPTABLE, f"Only {' and '.join(offers)} is provided")
    if operation.body is None or not operation.reads_body(version):
        return
    media_type = request.env.get("CONTENT_TYPE") or None
    if media_type is None or media_type.split(";")[0].strip() != JSON:
        raise ApiError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"The media type {quote_value(media_type)} is not supported, use application/json",
        )


def _write_reply(
    reply: Reply, operation: Operation, call: Call, response: falcon.Response
) -> None:
    status = reply.status or operation.responses[0].status
    modified_at = reply.modified_at
    if modified_at is None and status in operation.statuses_with_cache_headers:
        modified_at = now()
    response.status = status
    if reply.location is not None:
        response.set_header("Location", encode_address(f"{call.request.prefix}{reply.location}"))
    if modified_at is not None and call.version.has(Feature.CACHE_HEADERS):
        response.set_header("Last-Modified", format_http_date(modified_at))
        response.set_header("Cache-Control", "no-cache")
    if reply.body is None:
        response.text = None
        response.content_type = None
        return
    response.content_type = reply.content_type
    pieces = reply.body
    if isinstance(pieces, dict):
        response.data = to_json(pieces)
    elif not isinstance(pieces, list):
        response.stream = cast("Any", pieces)
    elif len(pieces) > 1 and call.request.env.get(PIECES_KEY):
        response.set_stream(cast("Any", pieces), sum(map(len, pieces)))
    else:
        response.data = b"".join(pieces)


def _write_error(
    error: ApiError,
    version: Version | None,
    request: falcon.Request,
    response: falcon.Response,
) -> None:
    response.content_type, body = render_error(
        error,
        accept=request.get_header("Accept"),
        version=version,
        request_id=read_request_id(request.env),
    )
    if error.status == HTTPStatus.CONFLICT:
        operation = request.env.get(OPERATION_KEY)
        path = "-" if operation is None else operation.path
        metrics.CONFLICTS.labels(path, error.code).inc()
    response.status = error.status
    response.data = b"" if request.method == "HEAD" else body
    for name, value in error.headers.items():
        response.set_header(name, value)
