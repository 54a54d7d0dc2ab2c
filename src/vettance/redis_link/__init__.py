"""The connection to Redis, and the claims that processes hold there."""
