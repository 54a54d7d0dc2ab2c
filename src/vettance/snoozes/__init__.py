"""Snoozes: a rule that has no effect for one customer, device or address until a moment."""
