# SPDX-License-Identifier: Apache-2.0
"""Layers around the pipeline: authentication, request ids, records, traces.

Knows the protocol.
"""
