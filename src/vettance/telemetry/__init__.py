"""What is counted and logged while the service runs."""
