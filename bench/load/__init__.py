"""How fast the whole service is, and what it takes of the machine."""
