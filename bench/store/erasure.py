"""What erasing a customer with three events costs, for each decision of the tenant that names somebody else.

    python bench erasure [--decisions 200000] [--folder bench-data/erasure] [--coded 0] [--rounds 3] [--json]

The store is that of `history_reading`, filled once; each round erases another customer from the same store.
Of `--coded` per cent of the events the body has a letter beyond ASCII, an escape of a URL and one of JSON.
"""

import argparse
import asyncio
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from bench.fixtures.made_history import DONE, fill
from bench.fixtures.processes import machine
from vettance import clock
from vettance.db.sqlite import SqliteStore, store_path
from vettance.retention.erasure import Eraser

_SECRET: Final = b"s" * 32
_EVENTS: Final = 3
_CODED: Final = ',"note":"Köln, 20%25 \\"new\\""}'


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, default=Path("bench-data/erasure"))
    parser.add_argument("--coded", type=int, default=0, help="per cent of the events")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    fill(given.folder, given.decisions)
    tenant = (given.folder / f"{DONE}-{given.decisions}").read_text()
    _code(store_path(given.folder), tenant, given.coded)
    costs = asyncio.run(_measured(given.folder, tenant, given.decisions, given.rounds))
    found = {"machine": machine(), "decisions": given.decisions, "coded": given.coded, "us": costs}
    if given.json:
        print(json.dumps(found))
        return
    each = ", ".join(f"{one:.1f}" for one in costs)
    print(f"{given.decisions:,} decisions, {given.coded} % coded, load {found['machine']['load']}: ")
    print(f"{each} µs of processor a decision")


def _code(path: Path, tenant: str, share: int) -> None:
    """Give so many of a hundred events a text that is not stored letter by letter, and the others none."""
    with closing(sqlite3.connect(path)) as file:
        plain = f"replace(CAST(sent AS TEXT), '{_CODED}', '}}')"
        coded = f"CASE WHEN seq % 100 < ? THEN substr({plain}, 1, length({plain}) - 1) || ? ELSE {plain} END"
        file.execute(
            f"UPDATE event SET sent = CAST({coded} AS BLOB) WHERE tenant = ?", (share, _CODED, tenant)
        )
        file.commit()


async def _measured(folder: Path, tenant: str, decisions: int, rounds: int) -> list[float]:
    """Erase so many customers; returns the microseconds of the processor for each decision of the tenant."""
    costs: list[float] = []
    async with await SqliteStore.open(store_path(folder), writer="thread") as store:
        await store.migrate()
        for name in await asyncio.to_thread(_customers, store_path(folder), tenant, rounds):
            before_s = time.process_time()
            done = await Eraser(store, _SECRET, clock.now_ms()).erase(tenant, name)
            costs.append((time.process_time() - before_s) * 1e6 / decisions)
            assert done.events == _EVENTS, done
    return costs


def _customers(path: Path, tenant: str, count: int) -> list[str]:
    with closing(sqlite3.connect(path)) as file:
        rows = file.execute(
            "SELECT customer_id FROM decision WHERE tenant = ? GROUP BY customer_id HAVING COUNT(*) = ? "
            "AND customer_id LIKE 'cus_%' ORDER BY MAX(seq) DESC LIMIT ?",
            (tenant, _EVENTS, count),
        ).fetchall()
    return [row[0] for row in rows]


if __name__ == "__main__":
    main()
