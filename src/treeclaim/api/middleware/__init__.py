# SPDX-License-Identifier: Apache-2.0
"""WSGI layers around the pipeline: authentication, request ids, records and traces."""
