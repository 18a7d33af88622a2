# SPDX-License-Identifier: Apache-2.0
"""Many providers brought to a state in one transaction (contract page 99, section 8).

The rules are those of the single operations; the statements are for all providers together, so
that a thousand cost little more than one. Knows the operations on providers and the catalogue.
"""
