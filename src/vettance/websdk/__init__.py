"""The browser's door: tokens, synchronous decisions, queued signals, and the script that sends them."""
