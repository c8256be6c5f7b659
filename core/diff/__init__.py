"""What two sequences have in common, in bounded time; they may be of anything."""
