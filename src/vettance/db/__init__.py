"""Storage: the only package that touches disk."""
