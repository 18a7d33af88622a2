# SPDX-License-Identifier: Apache-2.0
"""Bounds of one question: time, memory, caches.

Knows `model` alone.
"""
