# SPDX-License-Identifier: Apache-2.0
"""Whether a database can be taken over, and the data migrations that complete its rows.

Knows the operations and what is below them.
"""
