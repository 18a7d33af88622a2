# SPDX-License-Identifier: Apache-2.0
"""A folder for each noun, with its operations, schemas and answers.

A folder knows the protocol, `store` and `replica`.
"""
