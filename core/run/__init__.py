"""The folder of a run: its steps, their files, and the folders that are polled."""
