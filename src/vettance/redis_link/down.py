"""The error of a Redis that does not answer; apart, so that catching it does not load the client library."""


class StateDown(Exception):
    """The engine does not answer. Whether what it was asked took effect is not known."""
