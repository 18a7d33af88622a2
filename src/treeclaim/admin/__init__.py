# SPDX-License-Identifier: Apache-2.0
"""The admin listener: is the service alive, is it ready, and what does it count?"""
