"""What is missing, partial, unreadable or contradictory."""
