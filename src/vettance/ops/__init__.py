"""Running the service: what it measures, what it traces, backups, and the doctor."""
