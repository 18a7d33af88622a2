# SPDX-License-Identifier: Apache-2.0
"""Traces, as a real OTLP collector gets them."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.service import HEADERS, make_application
from treeclaim.api.middleware.tracing import Tracing

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


@pytest.fixture
def collector(monkeypatch):
    """The spans that an OTLP/HTTP collector was sent."""
    spans = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            for group in ExportTraceServiceRequest.FromString(sent).resource_spans:
                for scope in group.scope_spans:
                    spans.extend(scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments):
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    yield spans
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_request_is_a_span_in_the_callers_trace_with_its_phases_inside(collector, tmp_path):
    import httpx

    tracing = Tracing(make_application(tmp_path))
    with httpx.Client(
        transport=httpx.WSGITransport(app=tracing), base_url="http://x", headers=HEADERS
    ) as client:
        client.get(
            "/allocation_candidates?resources=VCPU:1",
            headers={"traceparent": f"00-{TRACE}-{PARENT}-01"},
        )
    tracing.close()
    spans = {one.name: one for one in collector}
    whole = spans["GET /allocation_candidates"]
    assert whole.trace_id.hex() == TRACE
    assert whole.parent_span_id.hex() == PARENT
    attributes = {one.key: one.value for one in whole.attributes}
    assert attributes["http.response.status_code"].int_value == 200
    assert attributes["openstack.microversion"].string_value == "1.39"
    for phase in ("feed", "relate", "write"):
        assert spans[phase].parent_span_id == whole.span_id
        assert spans[phase].end_time_unix_nano <= whole.end_time_unix_nano
