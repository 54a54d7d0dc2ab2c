"""What a deployment of a given size takes: costs of requests, measured, and what follows from them."""
