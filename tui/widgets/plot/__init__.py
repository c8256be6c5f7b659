"""Plots with axes, gaps and a cursor."""
