"""Vettance: a fraud and AML risk service that decides product events in milliseconds."""

__version__ = "0.2.0"
