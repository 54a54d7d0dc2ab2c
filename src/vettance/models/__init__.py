"""Models that score events: their features, their trees, how they are served and what is kept of them."""
