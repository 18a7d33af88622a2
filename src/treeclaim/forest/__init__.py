# SPDX-License-Identifier: Apache-2.0
"""The in-memory picture of all providers, and the search in it. No SQL, no HTTP."""

# numpy.unique loads it at its first call, which takes 40 ms, and would in the turn of a first change.
import numpy.ma  # noqa: F401
