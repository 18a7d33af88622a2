# SPDX-License-Identifier: Apache-2.0
"""What a request asks, worked out without looking at any provider.

Knows `model` alone.
"""
