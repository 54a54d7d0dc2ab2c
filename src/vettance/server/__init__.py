"""The server: every part of the service put together, started, followed and stopped."""
