"""The processes, threads and memory of this program."""
