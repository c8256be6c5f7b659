"""What opens over the panes."""
