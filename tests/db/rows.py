"""Statements for the tests: a change of configuration, a quota counter, a decided event."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from vettance.db.engine import EVERYBODY, Clash, Lost, Statement, Store, everyone, insert, scoped
from vettance.db.tables import DECISION, DELIVERY, EVENT, QUOTA_USE, Insert


async def until(holds: Callable[[], bool], within_s: float = 30.0) -> None:
    """Wait until something of another process or thread holds.

    The time is a bound for a busy machine, and no promise: what promises one says so.
    """
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 - nothing tells us; we are to find out as a caller would
            await asyncio.sleep(0.01)


def size(path: Path) -> int:
    """The bytes of a file."""
    return path.stat().st_size


_USE: Final = "tenant, hour, used"
_INSERT_USE: Final = Insert(QUOTA_USE, _USE)
_BEGIN_USES: Final = Insert(QUOTA_USE, _USE, key="tenant, hour")
_SUM_USES: Final = Insert(QUOTA_USE, _USE, key="tenant, hour", adds="used")
#: The same, as far as nobody knows that it only adds up.
_RAISE_USES: Final = Insert(QUOTA_USE, _USE, key="tenant, hour", sets="used = quota_use.used + excluded.used")
_INSERT_EVENT: Final = Insert(EVENT, "id, tenant, source, received_at_ms, occurred_at_ms, sent")
_INSERT_DECISION: Final = Insert(
    DECISION,
    "id, tenant, evaluated_at_ms, occurred_at_ms, event_name, event_category, decision, score, level, record",
)
_INSERT_DELIVERY: Final = Insert(
    DELIVERY, "id, tenant, subscription, type, subject, created_at_ms, state, due_at_ms, body"
)


def use(tenant: str, hour: int, used: int = 1) -> Statement:
    return insert(_INSERT_USE, tenant, (hour, used))


def uses(tenant: str, hours: Iterable[int]) -> Statement:
    """Count one more in each of some hours, in one insert."""
    args = [value for hour in hours for value in (tenant, hour, 1)]
    return insert(_SUM_USES, tenant, args[1:])


def begin_uses(tenant: str, hours: Iterable[int]) -> Statement:
    """Begin to count some hours, in one insert; those that are counted already stay."""
    args = [value for hour in hours for value in (tenant, hour, 0)]
    return insert(_BEGIN_USES, tenant, args[1:])


def add_use(tenant: str, hour: int, rows: int | None = None) -> Statement:
    return scoped(
        QUOTA_USE, tenant, "UPDATE quota_use SET used = used + 1 WHERE tenant = ? AND hour = ?", (hour,), rows
    )


def raise_uses(tenant: str, hour: int) -> Statement:
    """Count in two hours, be they there or not: in the same one twice when it is the third."""
    return insert(_RAISE_USES, tenant, (hour, 1, tenant, 6 - hour, 1))


def sum_uses(tenant: str, hour: int) -> Statement:
    """The same, in a text whose rows the store may add up before it looks at them."""
    return insert(_SUM_USES, tenant, (hour, 2, tenant, 6 - hour, 3))


def all_uses() -> Statement:
    return everyone(QUOTA_USE, "SELECT tenant, hour, used FROM quota_use ORDER BY tenant, hour")


def decided(event_id: str, size: int = 100) -> tuple[Statement, Statement, Statement]:
    """What is stored for one decided event: the event, its decision, and a delivery that tells of it."""
    blob = b"x" * size
    return (
        insert(_INSERT_EVENT, EVERYBODY, (event_id, "ten_a", "evaluate", 1, 1, blob)),
        insert(
            _INSERT_DECISION,
            EVERYBODY,
            (event_id, "ten_a", 1, 1, "user.login", "AUTHENTICATION", "ALLOW", 3, "low", blob),
        ),
        insert(
            _INSERT_DELIVERY,
            EVERYBODY,
            ("dlv" + event_id[3:], "ten_a", "whs_a", "EVENT_RISK_EVALUATED", event_id, 1, "pending", 1, b""),
        ),
    )


class _Model:
    """The same writes, one after the other, in plain Python."""

    def __init__(self) -> None:
        self.used: dict[int, int] = {}

    def apply(self, steps: list[tuple[str, int]]) -> type:
        after = dict(self.used)
        for kind, hour in steps:
            if kind == "use":
                if hour in after:
                    return Clash
                after[hour] = 1
            elif kind == "raise":
                for one in (hour, 6 - hour):
                    after[one] = after.get(one, 0) + 1
            elif kind == "sum":
                for one, more in ((hour, 2), (6 - hour, 3)):
                    after[one] = after.get(one, 0) + more
            elif hour in after:
                after[hour] += 1
            elif kind == "must":
                return Lost
        self.used = after
        return list


STEPS = st.lists(
    st.tuples(st.sampled_from(["use", "add", "must", "raise", "sum"]), st.integers(0, 6)),
    min_size=1,
    max_size=3,
)


async def expect_batch_like_model(store: Store, writes: list[list[tuple[str, int]]]) -> None:
    """Make simultaneous writes and hold what came of them against the model."""
    made = {
        "use": use,
        "add": add_use,
        "must": lambda tenant, hour: add_use(tenant, hour, rows=1),
        "raise": raise_uses,
        "sum": sum_uses,
    }
    outcomes = await asyncio.gather(
        *(store.write(*(made[kind]("ten_a", hour) for kind, hour in steps)) for steps in writes),
        return_exceptions=True,
    )
    model = _Model()
    assert [type(outcome) for outcome in outcomes] == [model.apply(steps) for steps in writes]
    rows = await store.read(all_uses())
    assert {hour: used for _, hour, used in rows} == model.used
