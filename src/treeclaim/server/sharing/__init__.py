# SPDX-License-Identifier: Apache-2.0
"""What the connections of a process share: their table, the memory for unfinished work, the threads."""
