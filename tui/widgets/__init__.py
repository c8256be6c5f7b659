"""Widgets that know nothing of dumps: each shows the plain values it gets."""
