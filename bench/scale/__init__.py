# SPDX-License-Identifier: Apache-2.0
"""What more machines, workers and providers bring: a model of what is measured, and its page."""
