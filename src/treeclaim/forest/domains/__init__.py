# SPDX-License-Identifier: Apache-2.0
"""The providers that can take each slot of a candidate, and under which anchor.

Knows the tables and the question.
"""
