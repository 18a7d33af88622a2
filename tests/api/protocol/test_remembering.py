# SPDX-License-Identifier: Apache-2.0
"""Results about requests are kept by few entries of short texts."""

from hypothesis import given
from hypothesis import strategies as st

from treeclaim.api.protocol.remembering import remembering_short

ARGUMENTS = st.tuples(
    st.text(max_size=6) | st.none(), st.lists(st.text(max_size=4), max_size=3).map(tuple)
)


def characters(arguments):
    """The length of some arguments."""
    first, others = arguments
    return len(first or "") + sum(map(len, others))


@given(st.lists(ARGUMENTS, max_size=40), st.integers(1, 5), st.integers(0, 8))
def test_only_recent_results_of_short_arguments_are_cached(asked, entries, longest):
    calls = []

    @remembering_short(entries, longest)
    def joined(first, others):
        calls.append((first, others))
        return f"{first}{others}"

    kept = []
    for arguments in asked:
        before = len(calls)
        assert joined(*arguments) == f"{arguments[0]}{arguments[1]}"
        assert len(calls) - before == (arguments not in kept)
        if arguments not in kept and characters(arguments) <= longest:
            kept = [*kept, arguments][-entries:]
