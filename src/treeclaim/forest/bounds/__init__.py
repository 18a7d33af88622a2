# SPDX-License-Identifier: Apache-2.0
"""Bounds of one question: time, memory, caches.

This package imports only `model`.
"""
