"""Connect: open the store and the counters that the settings name. The one place that knows every engine."""

from vettance.db.engine import Store
from vettance.db.sqlite import Seat, SqliteStore, store_path
from vettance.ops.meters import Meters
from vettance.settings import Settings
from vettance.state.memory import MemoryVelocity


async def connect_store(settings: Settings, *, writer: Seat, meters: Meters | None = None) -> Store:
    """Open the store; its schema is left to `migrate`. `writer` says where the embedded one writes.

    Raises `StoreDown` with one line that says what is wrong.
    """
    return await SqliteStore.open(store_path(settings.data), writer=writer, meters=meters)


def connect_velocity(_settings: Settings) -> MemoryVelocity:
    """Return a memory of what happened before, empty where it is one of this process."""
    return MemoryVelocity()
