"""Settings: what the environment says, read strictly, and the tables that defaults come from."""
