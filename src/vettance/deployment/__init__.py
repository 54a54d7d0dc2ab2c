"""Deployment: which engines a process runs on. `embedded` and `shared` build them, `connect` chooses."""
