"""Reference data: countries, jurisdictions, and words of names, from published sources."""
