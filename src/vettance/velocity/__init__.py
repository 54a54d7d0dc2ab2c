"""Velocity: what is remembered between events, so that rules can count over windows of time."""
