# SPDX-License-Identifier: Apache-2.0
"""The policy: reads the operator's files, and decides by the given rules.

Knows no operation; the rules of the operations are in `api/policy_rules`.
"""
