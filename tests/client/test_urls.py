# SPDX-License-Identifier: Apache-2.0
"""Arguments of a shell are sent byte for byte, whether or not they are UTF-8."""

from treeclaim.client import queries
from treeclaim.client.session import escaped, query_string
from treeclaim.model.names import aggregate_uuid

NOT_UTF_8 = "a\udcffé"


def test_bytes_that_are_no_text_are_sent_as_they_are():
    assert escaped(NOT_UTF_8) == "a%FF%C3%A9"
    assert query_string({"name": NOT_UTF_8}) == "name=a%FF%C3%A9"
    assert str(queries.CandidateQuery((("member_of", NOT_UTF_8),))) == "member_of=a%FF%C3%A9"


def test_an_aggregate_may_have_a_name_that_is_no_text():
    assert aggregate_uuid(NOT_UTF_8) != aggregate_uuid("aé")
