# SPDX-License-Identifier: Apache-2.0
"""What one question may cost, and what is kept of it: time, memory, caches.

Knows `model` alone.
"""
