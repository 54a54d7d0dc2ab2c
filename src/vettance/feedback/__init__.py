"""Feedback: what tenants tell about events once they know the truth."""
