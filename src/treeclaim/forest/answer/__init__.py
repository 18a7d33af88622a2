# SPDX-License-Identifier: Apache-2.0
"""Bodies of answers as bytes.

Knows the search, the divisions and what is below them.
"""
