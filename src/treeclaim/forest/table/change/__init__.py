# SPDX-License-Identifier: Apache-2.0
"""How the table of all providers is changed: in place, by whole trees, and by leaving dead rows behind.

See `treeclaim.forest.table.forest`.
"""
