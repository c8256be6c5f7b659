"""The rows of the tables, the same on the screen and in print."""
