"""Batches: screening everybody in a file."""
