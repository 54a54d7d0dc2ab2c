"""How AML works for a tenant, over HTTP."""
