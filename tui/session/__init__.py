"""What a person chose: places, bookmarks, preferences, keys."""
