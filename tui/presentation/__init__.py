"""What a table or a sample of core looks like: labels, widths, sentences."""
