# SPDX-License-Identifier: Apache-2.0
"""Commands that talk to a Placement API endpoint, whoever serves it.

They know `treeclaim.client` and nothing of the service: neither its store nor its configuration.
"""
