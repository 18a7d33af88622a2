# SPDX-License-Identifier: Apache-2.0
"""The server with the service behind it: connections are kept, and bytes of any kind are answered."""

import pytest

from tests.server.early_answers import Case, KeptConnection, judge
from tests.server.fronts import running
from tests.server.fuzzing import attack
from tests.service import HEADERS, make_application

SEEDS = 400
MANY = 5_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The server in this process, with short deadlines and bodies."""
    limit = 200_000
    application = make_application(
        tmp_path_factory.mktemp("service"), **{"treeclaim.max_body_bytes": limit}
    )
    with running(application, threads=4, body_bytes=limit, header_seconds=5.0) as server:
        yield server


def test_an_early_answer_leaves_the_connection_usable_whenever_the_body_comes(server):
    judge(server.address, keeps=True)


@pytest.mark.parametrize("status", [401, 413])
def test_a_body_beyond_the_limit_closes_the_connection_and_the_answer_says_so(server, status):
    headers = {"Content-Type": "application/json"} | (HEADERS if status == 413 else {})
    case = Case("POST", "/resource_providers", headers, b"x" * 300_000, status)
    with KeptConnection(server.address) as connection:
        for number in range(3):
            answer = connection.ask(case)
            assert (answer.status, answer.says_close) == (status, True)
            assert connection.opened == number + 1


def test_bytes_of_any_kind_are_answered_or_refused(server, caplog):
    attack(server.address, range(SEEDS))
    assert "Traceback" not in caplog.text
    assert server.ask().status == 200


@pytest.mark.slow
def test_many_bytes_of_any_kind_are_answered_or_refused(server, caplog):
    attack(server.address, range(SEEDS, MANY))
    assert "Traceback" not in caplog.text
    assert server.ask().status == 200
