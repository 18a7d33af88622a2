# SPDX-License-Identifier: Apache-2.0
"""Forked processes that answer one long question each, and the frames in which they reply."""
