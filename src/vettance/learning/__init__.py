"""Models of tenants: trained from labelled decisions, each in a process of its own, promoted and watched."""
