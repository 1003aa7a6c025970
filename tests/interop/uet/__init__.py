# SPDX-License-Identifier: Apache-2.0
"""A second implementation of UET, which shares no code, layout or constant with the rest of the project."""
