"""Benchmarks of the rules that come with the service."""
