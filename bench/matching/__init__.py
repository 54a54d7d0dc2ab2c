"""How fast names are screened, and how well they match."""
