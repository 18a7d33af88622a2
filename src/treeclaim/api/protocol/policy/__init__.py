# SPDX-License-Identifier: Apache-2.0
"""Who may do what: reads the operator's files, and decides by rules that it is given.

Knows no operation; the rules of the operations are in `api/policy_rules`.
"""
