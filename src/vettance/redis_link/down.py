"""The error of a Redis that does not answer; apart, so that catching it does not load the client library."""


class StateDown(Exception):
    """The engine does not answer. Whether what it was asked took effect is not known."""


class Redirection(StateDown):
    """A node of a cluster does not serve a slot, or not now: what it was asked took no effect.

    `moved` is the slot, and the host and port of the node that serves it, where that is known; `is_moving`
    says that the node still serves the slot and is giving it away.
    """

    def __init__(
        self, reason: str, moved: tuple[int, tuple[str, int]] | None = None, *, is_moving: bool = False
    ) -> None:
        super().__init__(reason)
        self.moved = moved
        self.is_moving = is_moving
