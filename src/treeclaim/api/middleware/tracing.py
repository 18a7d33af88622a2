# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry traces: a span for each request, with child spans for the phases of a search or a claim.

Names and attributes follow OpenTelemetry's semantic conventions for HTTP servers. The OTEL_* environment variables
configure the exporter.
"""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode

from treeclaim import metrics
from treeclaim.api.middleware.layers import Headers, Write
from treeclaim.api.pipeline import OPERATION_KEY, VERSION_KEY
from treeclaim.api.protocol.callers import read_request_id

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_NANOSECONDS = 1_000_000_000
_SERVER_ERROR = 500


class Tracing:
    """The WSGI layer that creates the spans."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application
        # OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME have precedence.
        resource = Resource({SERVICE_NAME: "treeclaim"}).merge(Resource.create())
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("treeclaim")
        metrics.phase_listeners.append(self._note_phase)

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer within a span of the caller's trace."""
        carrier = {
            "traceparent": environment.get("HTTP_TRACEPARENT", ""),
            "tracestate": environment.get("HTTP_TRACESTATE", ""),
        }
        method = str(environment.get("REQUEST_METHOD", ""))
        with self._tracer.start_as_current_span(
            method, context=propagate.extract(carrier), kind=SpanKind.SERVER
        ) as span:

            def start(status: str, headers: Headers, exc_info: Any = None, /) -> Write:
                _describe(span, environment, method, int(status.split(" ", 1)[0]))
                return start_response(status, headers, exc_info)

            return self._application(environment, start)

    def _note_phase(self, name: str, seconds: float, seconds_ago: float) -> None:
        end = time.time_ns() - int(seconds_ago * _NANOSECONDS)
        span = self._tracer.start_span(name, start_time=end - int(seconds * _NANOSECONDS))
        span.end(end)

    def close(self) -> None:
        """Send the remaining spans, and stop."""
        metrics.phase_listeners.remove(self._note_phase)
        self._provider.shutdown()


def _describe(span: Span, environment: "WSGIEnvironment", method: str, status: int) -> None:
    operation = environment.get(OPERATION_KEY)
    if operation is not None:
        span.update_name(f"{method} {operation.path}")
        span.set_attribute("http.route", operation.path)
    span.set_attribute("http.request.method", method)
    span.set_attribute("url.path", environment.get("PATH_INFO", ""))
    span.set_attribute("url.query", environment.get("QUERY_STRING", ""))
    span.set_attribute("http.response.status_code", status)
    span.set_attribute("openstack.request_id", read_request_id(environment))
    span.set_attribute("openstack.microversion", str(environment.get(VERSION_KEY, "")))
    if status >= _SERVER_ERROR:
        span.set_status(trace.Status(StatusCode.ERROR))
