"""Small questions over the screen."""
