"""What the pieces for Django and FastAPI share; no web framework is imported here."""
