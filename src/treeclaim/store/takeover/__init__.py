# SPDX-License-Identifier: Apache-2.0
"""Whether a database can be taken over, and what must be filled in.

Knows the operations and what is below them.
"""
