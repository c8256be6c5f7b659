"""Reading dumps and computing on them. Imports neither textual nor rich nor torch."""
