# SPDX-License-Identifier: Apache-2.0
"""Row locks that a write acquires before its decisions, in the common order of all writes."""
