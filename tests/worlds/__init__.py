# SPDX-License-Identifier: Apache-2.0
"""Small worlds for the search, each with questions and the answers that a person wrote down.

`table.py` has the worlds. Tests of every room of the
Forest, the reference and the service over HTTP take them from here.
"""
