"""Imports: history of AML, watched as of its own time."""
