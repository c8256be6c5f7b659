"""Samples and values as the frameworks dump them; a folder for each framework."""
