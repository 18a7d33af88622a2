# SPDX-License-Identifier: Apache-2.0
"""The sizes from which on a search takes another path, all in one place.

None of them changes an answer, only what it costs. They are attributes of this module, read each
time they are needed, so that tests can lower all of them together, and small worlds take the paths
that otherwise only large clouds do.
"""

# -- how far a search reads ahead ------------------------------------------------------------

FIRST_REACH = 1024
"""Trees that are looked at together at first, to find those in which every slot has a provider."""

FRUITLESS_STRIDE = 8
"""Factor by which a block grows after anchors without a candidate. Small steps would make
the way through a full cloud long."""

LARGEST_BLOCK = 8192
"""Partial candidates that are extended together at most: about what fits a processor's cache."""

SMALLEST_BLOCK = 64
"""Partial candidates that are extended together at least: fewer cost as much."""

LARGEST_FRUITLESS_BLOCK = 65_536
"""Partial candidates that are extended together at most where the search runs into dead ends."""

STACK_BYTES = 64_000_000
"""Memory in which partial candidates wait: at each step of a search as many as are extended
together, each with a provider for every slot. A quarter of what a question may hold by default."""

# -- candidates in the order of their scores ---------------------------------------------------

FIRST_BEST_TREES = 16
"""Trees that are staged together at first, those with the highest ceilings; then twice as many."""

# -- how many fit --------------------------------------------------------------------------------

FEW_TREES_WRITTEN = 64
"""Trees written since the last count up to which only these are counted again."""

# -- when an exact check pays ------------------------------------------------------------------

PATIENCE = 64
"""Dead ends in a row after which partial candidates are examined closely."""

SOME_COMBINATIONS = 500
"""A tree with more combinations than this is judged exactly before it is searched with others."""

MANY_COMBINATIONS = 20_000
"""A tree with more combinations than this is searched by itself, and judged exactly first."""

# -- how answers are written ---------------------------------------------------------------------

CANDIDATES_TOGETHER = 2048
"""Candidates that are handed on together, where there are as many."""

SLOTS_TOGETHER = 50_000
"""Slots of candidates that are written together, at some hundred bytes each: a few milliseconds."""

TREES_IN_A_PIECE = 16_384
"""Trees whose summaries are written together."""

FEW_SLOTS = 4
"""Slots up to which comparing each with each costs less than sorting the slots of each candidate."""

MOST_COMPARISONS = 4_000_000
"""Comparisons of slots with each other that are made by one array operation."""

LARGEST_CODED_PATTERN = 15
"""Slots up to which a pattern, read as the digits of a number, is looked up as one number; more do
not fit into an int64."""

# -- how the table is kept -----------------------------------------------------------------------

MOST_WRITES_KNOWN = 4096
"""Inventories of a class that were written, which are remembered by their numbers; a follower
that is further behind reads all."""

FEWEST_DEAD_ROWS = 4096
"""Dead rows from which on the living ones are copied to a table of their own, if they are also half
as many as these."""

FEWEST_CHANGED_KEYS = 4096
"""Keys of new or renamed providers that are always kept in a dict, beside the sorted arrays (`RowIndex`)."""

FEWEST_FULL_ROWS = 65_536
"""Rows from which on the living ones are copied when three quarters of the room are taken: to copy
the columns of fewer takes two milliseconds."""

ROWS_COPIED_TOGETHER = 1024
"""Rows at a time in that case, in less than a millisecond."""

GROUPS_COPIED_TOGETHER = 64
"""Different classes of the rows that are copied at a time, as to write into the columns of one takes some
60 microseconds however few rows it has; sixteen times as many lists of traits and aggregates."""

MOST_TREES_EDITED = 16
"""Changed trees that the canonical order, and pairs of anchor and provider, follow; after more, both are found
again."""
