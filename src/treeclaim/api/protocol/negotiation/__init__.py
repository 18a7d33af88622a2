# SPDX-License-Identifier: Apache-2.0
"""Negotiation by headers: the microversion and the media type."""
