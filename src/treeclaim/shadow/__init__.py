# SPDX-License-Identifier: Apache-2.0
"""Shows what would change if Treeclaim replaced a running Placement, from the requests of its clients.

A proxy passes on Placement's answers, and asks Treeclaim the same in the background. Knows
only the API of the service.
"""
