# SPDX-License-Identifier: Apache-2.0
"""Writes of resource providers, their trees and their parts."""
