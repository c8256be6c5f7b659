"""Widgets that know no dump: each shows the plain values it is given."""
