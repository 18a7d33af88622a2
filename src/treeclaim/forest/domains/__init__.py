# SPDX-License-Identifier: Apache-2.0
"""Which providers can take each part of a candidate, and under which anchor.

Knows the tables and the question.
"""
