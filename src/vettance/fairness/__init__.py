"""What keeps tenants apart inside one process: isolated failures, shared caches, rows that are skipped."""
