# SPDX-License-Identifier: Apache-2.0
"""Shows what would change if Treeclaim replaced a running Placement, from the requests of its clients.

A proxy answers with what Placement answers, and asks Treeclaim the same in the background. Knows
nothing of the service but its API.
"""
