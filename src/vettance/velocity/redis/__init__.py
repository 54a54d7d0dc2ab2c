"""The engine that keeps velocity in Redis, for any number of processes."""
