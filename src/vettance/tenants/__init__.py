"""Who calls, with which product, and how much."""
