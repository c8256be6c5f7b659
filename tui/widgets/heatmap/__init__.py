"""Tokens as flowing text, shaded by a statistic."""
