"""How good and how dear the models of tenants are."""
