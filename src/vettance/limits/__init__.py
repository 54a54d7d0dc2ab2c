"""Limits: how often each key may ask, how much each tenant may use, and how what is shared is divided."""
