"""The app: which step, sample and pane are on screen, and what each key does."""
