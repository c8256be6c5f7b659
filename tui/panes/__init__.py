"""One module a pane: what a part of a run looks like on screen."""
