"""Screening for tenants: who is asked about, what is answered and kept, and the alerts that come of it."""
