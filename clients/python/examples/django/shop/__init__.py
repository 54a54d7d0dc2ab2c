"""A small shop in Django: a login, a payment, a webhook, and the browser SDK in its pages."""
