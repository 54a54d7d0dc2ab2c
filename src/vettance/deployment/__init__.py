"""Which engines a deployment uses: one process with a file, or several on PostgreSQL and Redis."""
