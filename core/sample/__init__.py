"""One sample: its tokens, turns, messages and facts, and its comparison with another."""
