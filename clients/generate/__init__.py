"""Writes what both clients are made of from the service's own OpenAPI document: `make clients`."""
