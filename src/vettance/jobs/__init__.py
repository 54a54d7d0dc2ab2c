"""Jobs: events accepted now and decided a moment later, in the order of their receipt."""
