"""History: every decision findable and countable, at ten million rows as at ten."""
