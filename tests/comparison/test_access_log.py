# SPDX-License-Identifier: Apache-2.0
"""Reads are found in the logs that deployments of Placement write."""

import pytest

from treeclaim.comparison.access_log import parse_log
from treeclaim.comparison.comparison import ReadRequest

UWSGI = (
    "[pid: 35|app: 0|req: 4/7] 10.0.0.4 () {44 vars in 711 bytes} [Sat Nov 28 12:00:00 2026] "
    "GET {target} => generated 29 bytes in 3 msecs (HTTP/1.1 200) 5 headers in 197 bytes (1 switches on core 0)"
)
UWSGI_OF_KOLLA = (
    "2026-11-28 12:00:00.1 [pid: 1] 10.0.0.4 () {{}} [Sat Nov 28 12:00:00 2026] GET {target} => "
    "generated 2 bytes in 1 msecs (HTTP/1.1 200)"
)
APACHE = '10.0.0.4 - - [28/Nov/2026:12:00:00 +0000] "GET {target} HTTP/1.1" 200 29 "-" "nova"'
PLACEMENT = (
    "2026-11-28 12:00:00.000 7 INFO placement.requestlog [req-1 req-2 u p - default default] "
    '10.0.0.4 "GET {target}" status: 200 len: 29 microversion: {version}'
)
TREECLAIM = PLACEMENT.replace("placement.requestlog", "treeclaim.requests") + " time: 0.000512"
QUERY = "/allocation_candidates?limit=1000&resources=MEMORY_MB%3A512%2CVCPU%3A1"


@pytest.mark.parametrize(
    ("form", "version"),
    [
        (UWSGI, None),
        (UWSGI_OF_KOLLA, None),
        (APACHE, None),
        (PLACEMENT, "1.36"),
        (TREECLAIM, "1.36"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "/placement", "http://controller/placement"])
def test_a_read_is_found_in_each_form_below_each_prefix(form, version, prefix):
    line = form.replace("{target}", prefix + QUERY).replace("{version}", "1.36")
    result = parse_log([line, line])
    assert result.reads == {ReadRequest(QUERY, version): 2}


def test_other_lines_are_skipped_with_a_reason():
    result = parse_log(
        [
            APACHE.replace("GET {target}", "PUT /allocations/x"),
            APACHE.replace("{target}", "/v3/auth/tokens"),
            "*** Starting uWSGI ***",
            PLACEMENT.replace("{target}", "/traits").replace("{version}", "-"),
        ]
    )
    assert result.skip_reasons == {
        "PUT is no read": 1,
        "not of the Placement API": 1,
        "not a request": 1,
    }
    assert [read.version for read in result.reads] == [None]
    assert result.lacks_versions
