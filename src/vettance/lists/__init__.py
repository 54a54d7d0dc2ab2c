"""Allow and block lists."""
