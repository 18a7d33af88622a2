# SPDX-License-Identifier: Apache-2.0
"""What partial candidates may become where their slots compete for providers, or concern each other.

See `treeclaim.forest.order.competing.bounds`.
"""
