"""Webhooks: what the tenant is told, by whom it is signed, and how it arrives."""
