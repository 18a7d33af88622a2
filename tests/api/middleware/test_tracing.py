# SPDX-License-Identifier: Apache-2.0
"""Traces, as a real OTLP collector gets them."""

import time
import uuid
from functools import cache
from types import SimpleNamespace

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.bodies import add_hosts, claim_of
from tests.json_server import json_server
from tests.service import HEADERS, client_of, make_application
from treeclaim.api.middleware.tracing import Tracing

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


@pytest.fixture
def collector(monkeypatch):
    """The spans that an OTLP/HTTP collector was sent."""
    spans = []

    def respond(request):
        for group in ExportTraceServiceRequest.FromString(request.body).resource_spans:
            for scope in group.scope_spans:
                spans.extend(scope.spans)
        return 200, {}

    with json_server(respond) as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        yield spans


def test_request_span_joins_the_trace_of_the_caller_with_its_phases(collector, tmp_path):
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
    spans = {span.name: span for span in collector}
    whole = spans["GET /allocation_candidates"]
    assert whole.trace_id.hex() == TRACE
    assert whole.parent_span_id.hex() == PARENT
    attributes = {attribute.key: attribute.value for attribute in whole.attributes}
    assert attributes["http.response.status_code"].int_value == 200
    assert attributes["openstack.microversion"].string_value == "1.39"
    for phase in ("feed", "relate", "write"):
        assert spans[phase].parent_span_id == whole.span_id
        assert spans[phase].end_time_unix_nano <= whole.end_time_unix_nano


def test_claim_span_contains_its_phases_in_sequence(collector, tmp_path, monkeypatch):
    tracing = Tracing(make_application(tmp_path))
    host, consumer = str(uuid.uuid4()), str(uuid.uuid4())
    with client_of(tracing) as client:
        add_hosts(client, host, VCPU=1)
        claim = claim_of({host: {"resources": {"VCPU": 1}}}, project_id="project", user_id="user")
        # All stages use the same reading of the clock: a busy machine may delay a thread between two readings.
        clock = SimpleNamespace(time_ns=cache(time.time_ns))
        monkeypatch.setattr("treeclaim.api.middleware.tracing.time", clock)
        assert client.put(f"/allocations/{consumer}", json=claim).status_code == 204
    tracing.close()
    (whole,) = (span for span in collector if span.name == "PUT /allocations/{consumer_uuid}")
    inside = [span for span in collector if span.parent_span_id == whole.span_id]
    assert {span.name for span in inside} == {"wait", "locks", "statements", "commit", "hand_over"}
    inside.sort(key=lambda span: (span.start_time_unix_nano, span.end_time_unix_nano))
    begins, ends = (
        [getattr(span, f"{edge}_time_unix_nano") for span in inside] for edge in ("start", "end")
    )
    # The clocks of wall and phases differ by microseconds.
    assert begins[0] >= whole.start_time_unix_nano - 1_000_000
    assert ends[-1] <= whole.end_time_unix_nano
    assert begins[1:] == pytest.approx(ends[:-1], rel=0, abs=1_000_000)
