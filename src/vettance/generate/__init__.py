"""Synthetic traffic with a ground truth, for demos, tests and benchmarks."""
