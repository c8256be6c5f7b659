"""Per-token fields: their values over many samples, and statistics of them."""
