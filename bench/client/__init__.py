"""The HTTP client, and the load that it makes."""
