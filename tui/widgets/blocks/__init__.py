"""A column of foldable blocks of text."""
