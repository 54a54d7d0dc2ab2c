"""The delivery worker on simulated days, in virtual time."""
