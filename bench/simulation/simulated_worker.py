"""The lives of a delivery worker on a simulated day: it is killed and stopped, and its clock jumps."""

import asyncio
from typing import Any

from bench.simulation.simulated_day import FAULTS_S
from bench.simulation.simulated_world import BEGIN_MS, SimulatedNetwork, SimulatedStore, World
from vettance.telemetry.meters import Meters
from vettance.webhooks import attempt_results, deliver
from vettance.webhooks.deliver import Deliverer
from vettance.webhooks.retry_policy import RetryPolicy

#: Ten times as fast as the real ones, so that a schedule has room for many attempts.
POLICY = RetryPolicy(delays_ms=(100, 200, 400, 800, 1600), attempt_s_max=1.0, fault_pause_ms=6_000)
PACE = {
    "_POLL_S": 0.05,
    "_CHANGES_S": 0.1,
    "_SWEEP_S": 0.5,
    "_OVERDUE_MS": 400,
    "LEASE_MS": 3_000,
    "ROUND_S": 0.02,
}


def set_pace() -> None:
    """Have the workers of this process look and sweep as much faster as their policy is."""
    for name, value in PACE.items():
        setattr(deliver, name, value)
        setattr(attempt_results, name, value)


class Worker:
    """One life of a worker process. Its clock may be wrong."""

    def __init__(self, world: World, skew_ms: int, *, alone: bool) -> None:
        self.world = world
        self.skew_ms = skew_ms
        self.died_s: float | None = None
        self.slot = memoryview(bytearray(8 * 1024)).cast("Q")
        self.deliverer = Deliverer(
            SimulatedStore(world),  # type: ignore[arg-type]
            SimulatedNetwork(world, self),  # type: ignore[arg-type]
            world.vault,
            policy=POLICY,
            alone=alone,
            now_ms=self.now_ms,
            meters=Meters(self.slot, "webhooks"),
        )
        self.running = asyncio.create_task(self.deliverer.run())

    def now_ms(self) -> int:
        return BEGIN_MS + int(self.world.now_s() * 1000) + self.skew_ms

    def tasks(self) -> list[asyncio.Task[Any]]:
        return [self.running, *self.deliverer._attempts]

    async def kill(self) -> None:
        """End it as SIGKILL does: nothing it has not done yet is ever done."""
        self.died_s = self.world.now_s()
        left = self.tasks()
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def stop(self) -> None:
        """End it as SIGTERM does."""
        self.deliverer.stop()
        await self.running
        self.died_s = self.world.now_s()


async def keep_working(world: World, plan: list[tuple[float, str]]) -> Worker:
    """Run one seat of workers through its plan of (moment, what happens); return who sits there then."""
    alone = world.day.workers == 1
    skew_ms = 0 if world.day.calm else world.rng.randint(-50, 50)
    worker = Worker(world, skew_ms, alone=alone)
    for at_s, what in plan:
        await asyncio.sleep(max(0.0, at_s - world.now_s()))
        if what == "jump":
            worker.skew_ms += world.rng.choice((-1, 1)) * world.rng.choice(
                (500, 20_000, 3_600_000, 86_400_000)
            )
            continue
        await (worker.kill() if what == "crash" else worker.stop())
        await asyncio.sleep(world.rng.uniform(0.01, 1.5))
        worker = Worker(world, worker.skew_ms, alone=alone)
    await asyncio.sleep(max(0.0, FAULTS_S - world.now_s()))
    worker.skew_ms = 0  # The clock is set right in the end, which is a jump too.
    return worker
