# SPDX-License-Identifier: Apache-2.0
"""What more machines, workers and providers bring: a model, a simulation that checks it, a page."""
