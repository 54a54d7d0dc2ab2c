"""Streams: events taken from a broker, decided once each, and their results sent to one."""
