"""The engine that keeps velocity in the memory of one process."""
