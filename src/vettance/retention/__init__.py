"""Retention: what is removed when its time is over, and what is erased when its person asks for it."""
