"""Numbers and rows as text, for the screen and for print."""
