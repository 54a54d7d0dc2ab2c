"""Webhooks: what the tenant receives, how it is signed, and how it arrives."""
