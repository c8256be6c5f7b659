"""Filters, and searches in texts and tokens."""
