# SPDX-License-Identifier: Apache-2.0
"""The lanes of questions: short ones in the worker, long ones in children or in slices of time."""
