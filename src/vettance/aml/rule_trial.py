"""Trials of AML rules: a memory and a parser that begin anew with every test of a rule set."""

from collections.abc import Callable

from vettance.aml.aml_event import AmlEvent, read_aml_event
from vettance.aml.aml_memory import AmlMemory, SnapshotVelocity
from vettance.velocity.port import Plan
from vettance.velocity.port import Velocity as Engine
from vettance.wire.payload import JSON, encode


class Trial(AmlMemory):
    """The engine that `rules.ruleset.admit` asks for, and the parser that goes with it.

    Tests may leave the id of an event out; it is numbered then.
    """

    def __init__(self, velocity: SnapshotVelocity) -> None:
        super().__init__(velocity)
        self._tenant = ""
        self._count = 0

    def install(self, tenant: str, plan: Plan) -> None:
        """Begin a test."""
        super().install(tenant, plan)
        self._tenant = tenant

    def parse(self, body: JSON, now_ms: int) -> AmlEvent:
        """Read an event of a test and follow it. Raises `Unprocessable`."""
        self._count += 1
        body = {"externalEventId": f"test-{self._count}", **body}
        return self.follow(self._tenant, read_aml_event(body, encode(body), now_ms))

    def maker(self) -> Callable[[], Engine]:
        """Return what makes the engine: this one, emptied before every test."""
        return lambda: self
