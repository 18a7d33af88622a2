# SPDX-License-Identifier: Apache-2.0
"""Changes of the table of all providers: in place, by whole trees, and by leaving dead rows behind.

See `treeclaim.forest.table.forest`.
"""
