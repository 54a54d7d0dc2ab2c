"""People: who uses the console, with which roles, and how they sign in."""
