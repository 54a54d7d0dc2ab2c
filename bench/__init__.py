"""Benchmarks and faults, by purpose; `README.md` says which answers which question."""

from pathlib import Path

#: `python BENCH NAME` runs the script of that name.
BENCH = Path(__file__).resolve().parent
