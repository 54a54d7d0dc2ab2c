"""The demo: labelled traffic streamed through a real service."""

from vettance.demo.cli import demo

__all__ = ["demo"]
