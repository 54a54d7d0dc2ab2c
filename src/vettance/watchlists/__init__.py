"""Watchlists: what governments publish, read, indexed and compared with the people a tenant asks about."""
