"""Backtests as jobs: other rules on a tenant's past, behind the service, for all to watch."""
