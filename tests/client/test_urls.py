# SPDX-License-Identifier: Apache-2.0
"""Arguments of a shell are sent byte for byte, whether or not they are UTF-8."""

import uuid

from treeclaim.client import queries
from treeclaim.client.session import encode_query, escape_url
from treeclaim.model.names import aggregate_uuid

NOT_UTF_8 = "a\udcffé"


def test_non_utf8_bytes_are_percent_encoded_unchanged():
    assert escape_url(NOT_UTF_8) == "a%FF%C3%A9"
    assert encode_query({"name": NOT_UTF_8}) == "name=a%FF%C3%A9"
    assert str(queries.CandidateQuery((("member_of", NOT_UTF_8),))) == "member_of=a%FF%C3%A9"


def test_aggregate_name_may_be_non_utf8():
    assert aggregate_uuid(NOT_UTF_8) != aggregate_uuid("aé")


def test_digits_with_underscores_are_not_a_uuid():
    word = "1_" + "1" * 30
    assert uuid.UUID(word), "Python reads digits as `int` does, with underscores in them"
    assert aggregate_uuid(word) == aggregate_uuid(aggregate_uuid(word)) != str(uuid.UUID(word))
