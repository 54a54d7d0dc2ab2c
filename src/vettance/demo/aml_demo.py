"""The demo of AML: generated money through the watching service, and what it caught."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table

from vettance import clock
from vettance.clock import DAY_MS
from vettance.commands import counted_word
from vettance.demo.demo_client import ClientFault, Connection, DemoTarget, post
from vettance.generate.aml_stream import Watch, aml_events
from vettance.wire.payload import JSON, encode

PATH: Final = "/api/v1/aml/events"
_EACH: Final = 3  # Planted cases of each typology.
_TRIES: Final = 100
_PAUSE_S: Final = 0.1
#: Events of one customer on one day, and of all planted cases, as `vettance generate aml` makes them.
_ORDINARY_A_DAY: Final = 1.2
_PLANTED: Final = 600
_decode = msgspec.json.Decoder().decode


class DemoAmlEvent(NamedTuple):
    """An event to be sent, with what it is: ordinary ones have no case."""

    body: bytes
    typology: str
    case: str


class AmlDemoResult:
    """What came of it: by case whether it alerted, ordinary events, alerts, and the gravest one."""

    def __init__(self) -> None:
        self.typology: dict[str, str] = {}
        self.caught: set[str] = set()
        self.events = self.ordinary = self.ordinary_alerted = 0
        self.severities: dict[str, str] = {}
        self.example: dict[str, Any] | None = None

    def note(self, told: DemoAmlEvent, answer: dict[str, Any]) -> None:
        """Count an answer."""
        self.events += 1
        alerts = answer["alerts"]
        self.severities.update({alert["id"]: alert["severity"] for alert in alerts})
        if not told.case:
            self.ordinary += 1
            self.ordinary_alerted += bool(alerts)
            return
        self.typology[told.case] = told.typology
        if alerts:
            self.caught.add(told.case)
            for alert in alerts:
                if alert["ruleId"] == "cycle" or self.example is None:
                    self.example = alert


def money(customers: int, days: int, seed: int) -> Iterator[DemoAmlEvent]:
    """Give generated money whose last day is today, in order of time."""
    start_ms = clock.now_ms() - days * DAY_MS
    for move, body in aml_events(Watch(customers, days, seed, start_ms, cases=_EACH)):
        yield DemoAmlEvent(encode(body), move.typology, move.case)


def about_events(customers: int, days: int) -> int:
    """Return about how many events `money` gives, to show how far its watch is."""
    return round(customers * days * _ORDINARY_A_DAY) + _PLANTED


async def watch_money(
    feed: Iterator[DemoAmlEvent], to: DemoTarget, connections: int, advance: Callable[[int], None]
) -> AmlDemoResult:
    """Send a feed as fast as the service answers. Raises `ClientFault`."""
    outcome = AmlDemoResult()
    await _wait_until_switched_on(to)

    async def work() -> None:
        connection = await Connection.open(to)
        try:
            for told in feed:
                answer = await connection.ask(post(to, PATH, told.body))
                if answer.status != 200:
                    raise ClientFault(f"an event was refused with {answer.status}: {answer.body.decode()}")
                outcome.note(told, _decode(answer.body))
                advance(outcome.events)
        finally:
            connection.close()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(connections):
                group.create_task(work())
    except* ClientFault as faults:
        raise ClientFault(str(faults.exceptions[0])) from None
    return outcome


async def _wait_until_switched_on(to: DemoTarget) -> None:
    """A running service follows the tenant's new product within seconds."""
    connection = await Connection.open(to)
    try:
        for _ in range(_TRIES):
            if (await connection.ask(post(to, PATH, b"{}"))).status != 403:
                return
            await asyncio.sleep(_PAUSE_S)
        raise ClientFault("the service does not see that AML is on")
    finally:
        connection.close()


def money_record(outcome: AmlDemoResult, took_s: float) -> JSON:
    """Tell a script what `show_money` tells a person."""
    caught = Counter(outcome.typology[case] for case in outcome.caught)
    return {
        "events": outcome.events,
        "seconds": round(took_s, 3),
        "perSecond": round(outcome.events / max(took_s, 0.001), 1),
        "typologies": {
            name: {"cases": cases, "caught": caught[name]}
            for name, cases in sorted(Counter(outcome.typology.values()).items())
        },
        "ordinaryEvents": outcome.ordinary,
        "ordinaryAlerted": outcome.ordinary_alerted,
        "alerts": dict(Counter(outcome.severities.values())),
    }


def show_money(console: Console, outcome: AmlDemoResult, to: DemoTarget, took_s: float) -> None:
    """Print what was caught, what ordinary customers had to bear, and one alert."""
    table = Table(title="Planted laundering")
    for name in ("typology", "cases", "caught"):
        table.add_column(name, justify="left" if name == "typology" else "right")
    for name, cases in sorted(Counter(outcome.typology.values()).items()):
        caught = sum(outcome.typology[case] == name for case in outcome.caught)
        table.add_row(name.replace("_", " "), f"{cases}", f"{caught}")
    console.print(table)
    console.print(
        f"{outcome.events:,} events in {took_s:.1f} s ({outcome.events / max(took_s, 0.001):,.0f} a second). "
        f"{len(outcome.caught)} of {len(outcome.typology)} planted cases caught; "
        f"{outcome.ordinary_alerted / max(1, outcome.ordinary):.2%} of ordinary events alerted."
    )
    ranks = Counter(outcome.severities.values())
    console.print(
        f"{counted_word(len(outcome.severities), 'alert')}: "
        + ", ".join(f"{n} {s}" for s, n in ranks.items())
    )
    if outcome.example is not None:
        console.print(f"\nOne of them, {outcome.example['severity']}: {outcome.example['summary']}")
    console.print("\n[bold]The cases of your officers[/]")
    key = f'-H "x-api-key: {to.api_key}"'
    console.print(
        f"curl -s '{to.base_url}/api/v1/aml/cases?severity=critical' {key}", soft_wrap=True, markup=False
    )
