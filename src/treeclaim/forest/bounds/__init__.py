# SPDX-License-Identifier: Apache-2.0
"""Limits of one request: time, memory, caches.

This package imports only `model`.
"""
