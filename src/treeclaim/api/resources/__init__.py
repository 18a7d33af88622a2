# SPDX-License-Identifier: Apache-2.0
"""A folder for each noun, with its operations, schemas and answers.

A noun imports the protocol, `store` and `replica`.
"""
