"""What we decided, and why."""
