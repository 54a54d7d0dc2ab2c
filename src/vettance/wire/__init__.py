"""JSON as it is received and sent: parsing, bounds, numbers, moments, and names that were misspelt."""
