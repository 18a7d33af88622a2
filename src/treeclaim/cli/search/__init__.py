# SPDX-License-Identifier: Apache-2.0
"""Commands that talk to any Placement API endpoint.

They know `treeclaim.client` and nothing of the service: neither its store nor its configuration.
"""
