"""The processes of a server: the pool of workers, and how each takes memory from the system."""
