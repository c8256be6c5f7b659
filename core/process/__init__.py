"""Processes, threads and memory of this program."""
