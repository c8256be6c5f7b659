"""The Tokens pane: one sample token by token."""
