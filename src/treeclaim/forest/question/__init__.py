# SPDX-License-Identifier: Apache-2.0
"""The part of a request's analysis that needs no provider.

This package imports only `model`.
"""
