# SPDX-License-Identifier: Apache-2.0
"""A request, worked out without any provider.

Knows `model` alone.
"""
