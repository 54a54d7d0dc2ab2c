"""Replays: answers kept by `Idempotency-Key`, so that a retry has no second effect."""
